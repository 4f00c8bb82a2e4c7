/* Networks: FMUs of FMI 3.0 whose clocks are connected, advanced together so that an activation reaches the others at its instant. */
#ifndef BIELLA_NETWORK_H
#define BIELLA_NETWORK_H

#include "fmu/importer/host/clocks.h"

typedef struct bl_fmu_network bl_fmu_network;

/* The network of an FMU, which is looked for once in a run; NULL: it is in none. */
bl_fmu_network *bl_network_of(const bl_block *b, bl_fmu_host *f);
/* At the end of initialization mode of an FMU: when it is the last one, the event at the start is handled. */
int bl_network_begin(bl_fmu_host *f, double t);
/* Advances all members at the turn of the first one; the others have nothing to do. */
int bl_network_advance(const bl_block *b, bl_fmu_host *f, double t, double dt);
void bl_network_leave(bl_fmu_host *f);

#endif
