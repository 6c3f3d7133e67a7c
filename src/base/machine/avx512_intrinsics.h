// Includes immintrin.h for files that are compiled for AVX-512 or AMX, with the compiler workarounds that
// such files need. Tests compile the same files with an emulation of both instruction sets (tests/emulation).
#pragma once

#if defined(SLUICE_EMULATED_INTRINSICS)
#include <emulation/intrinsics.h>
#elif defined(__GNUC__) && !defined(__clang__)
// GCC 12 reports the deliberately undefined operands inside its own AVX-512 intrinsics (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif

namespace sluice {
namespace {

// Loads `a` into a register, so that the compiler does not make the load part of the instruction that uses
// it.
[[gnu::always_inline]] inline void load_apart(__m512i& a) {
#if defined(SLUICE_EMULATED_INTRINSICS)
  (void)a;
#else
  __asm__("" : "+v"(a));
#endif
}

// LDTILECFG; `shapes` has 64 bytes. (GCC 12 takes its own _tile_loadconfig to read the first 8 of them only.)
template <class Shapes>
[[gnu::always_inline]] inline void load_tile_shapes(const Shapes& shapes) {
  static_assert(sizeof(shapes) == 64);
#if defined(SLUICE_EMULATED_INTRINSICS)
  _tile_loadconfig(&shapes);
#else
  __asm__ volatile("ldtilecfg %0" ::"m"(shapes) : "memory");
#endif
}

}  // namespace
}  // namespace sluice
