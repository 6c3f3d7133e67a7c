// immintrin.h without the false warnings of its AVX-512 part.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 reports the deliberately undefined operands inside its own AVX-512 intrinsics (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif
