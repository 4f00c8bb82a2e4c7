/* Random numbers that depend only on a seed, a stream and the number of a sample: the same bits on every platform. */
#ifndef BIELLA_NOISE_H
#define BIELLA_NOISE_H

#include <stdint.h>

/* Uniform in (0, 1), symmetric about 1/2, never 0 or 1. Streams 0, 1, 2 … of one seed are independent. */
double bl_noise_uniform(double seed, int32_t stream, uint64_t sample);

/* Normal with mean 0 and variance 1. */
double bl_noise_normal(double seed, int32_t stream, uint64_t sample);

/* Faster generation of values with mean 0 and variance 1, not by inverse transform: number n of the stream of
   a seed. Steps are uniform; their sums are normal after a few. */
uint64_t bl_noise_stream(double seed);
double bl_noise_fast_normal(uint64_t stream, uint64_t number);
double bl_noise_step(uint64_t stream, uint64_t number);

/* A sample number stored as a double: a deserialized state may contain any value. */
static inline uint64_t bl_noise_sample(double kept) { return kept >= 0.0 && kept < 9e15 ? (uint64_t)kept : 0; }

#endif
