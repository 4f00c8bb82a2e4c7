/* Numbers of mathematics. */
#ifndef BIELLA_CONSTANTS_H
#define BIELLA_CONSTANTS_H

#define BL_PI 3.14159265358979323846

#endif
