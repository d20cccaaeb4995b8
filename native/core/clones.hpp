// Functions that are compiled for several instruction sets; the best is chosen when the module is loaded. Only for
// integers, and for divisions that are rounded once: these have the same bits in each.
#pragma once

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define ONEPASS_CLONED
#define ONEPASS_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ONEPASS_CLONES
#endif
