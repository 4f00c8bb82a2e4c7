/* Networks: FMUs of FMI 3.0 whose clocks are connected, advanced together so that an activation reaches the others at its instant. */
#ifndef BIELLA_NETWORK_H
#define BIELLA_NETWORK_H

#include "fmu/importer/host/clocks.h"

typedef struct bl_fmu_network bl_fmu_network;

/* Looks once in a run for the network of an FMU: f->network, NULL if it is in none. Fails without memory. */
int bl_network_find(const bl_block *b, bl_fmu_host *f);
/* At the end of initialization mode of an FMU: when it is the last one, the event at the start is handled. */
int bl_network_begin(bl_fmu_host *f, double t);
/* Advances all members at the turn of the first one; the others have nothing to do. */
int bl_network_advance(const bl_block *b, bl_fmu_host *f, double t, double dt);
void bl_network_leave(bl_fmu_host *f);

#endif
