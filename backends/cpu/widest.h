// Owns: the attribute of plain loops that are compiled for the widest vectors that the machine has. Must not: be needed
// for a right result.
#pragma once

// Which clone is taken is decided while libraries are loaded, before a sanitizer is there.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define GL_WIDEST __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define GL_WIDEST
#endif
