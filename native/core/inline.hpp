// The loops are compiled once per instruction set. A function that a header shares among these copies must be inlined:
// otherwise the linker keeps one copy, and the code for plain x86-64 could call the one for AVX-512.
#pragma once

#define ONEPASS_INLINE __attribute__((always_inline)) inline
#define ONEPASS_INLINE_LAMBDA __attribute__((always_inline))
