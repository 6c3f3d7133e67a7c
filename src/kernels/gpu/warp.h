// Kernels of a GPU, written once for the compiler of the GPU and for this one.
//
// A kernel is a struct:
//
//   struct ScaleKernel {
//     struct Args { float* x; std::uint64_t count; float factor; };          plain; pointers of the device
//     template <class Warp>
//     static SLUICE_GPU void run(const Warp& warp, const Args& args);       the work of one warp of 32 lanes
//   };
//
// A Launcher (lockstep_launcher.h) starts as many warps as it is told, in any order, many at a time: warps of
// one launch must not depend on each other. Control flow is the same for all lanes of a warp; lanes differ by
// masks.
//
// A Warp has, besides its types Float, Word (32 bits without a sign) and Mask, each a value for each lane
// that a plain value converts to, with the usual operators:
//
//   index()                       of the warp in its launch; the same for all lanes
//   lane()                        0 … 31, a Word
//   load(p, at), store(p, at, v)  p[at] of float or std::uint32_t; `at` is a Word
//   load_if(mask, p, at, other), store_if(mask, p, at, v)     the others touch no memory
//   load_byte, load_half          p[at] of bytes, of 16 bits, as Word; load_byte_if …
//   load4(p, at)                  std::array-like Quad of 4 Words from p + at bytes, multiples of 16
//   load_words<N>(p, at), load_words_if<N>(mask, p, at)       N = 1, 2, 4 … Words from p + at bytes, a
//                                 multiple of as many bytes (16 at most); what is masked out is 0
//   store_words_if<N>(mask, p, at, words)                     N = 1, 2, 4 Words to p + at bytes, as aligned
//   load_floats<N>(p, at)         N = 1, 2, 4 Floats from p + at floats, as aligned; neither these nor the
//                                 words before are written while the kernel runs
//   place(p, at)                  a Place: p + at bytes; advance(place, bytes) moves it, alike in all lanes
//   load_words<N>(place, on), load_floats<N>(place, on)       as above, `on` bytes from there
//   fma(a, b, c) sqrt(a)          rounded once; + − · / on Float are, too, and never fused
//   select(mask, a, b), min, max  max(a, b) is a > b ? a : b, as lanes/vec-inl.h says
//   bits(Float) → Word, number(Word) → Float                 the same 32 bits
//   from_f16(Word) → Float        the lower 16 bits as binary16; to_float(Word): the whole number
//   round_even(Float) → Float     to a whole number
//   shuffle(v, from), shuffle_xor(v, mask)                    of Float or Word; all lanes take part
//   get(v, lane)                  the plain value that v has there
//   ballot(mask) → std::uint32_t  the same for all lanes; count(Word) bits that are set,
//                                 ones(std::uint32_t) those of a plain value
//   bf16_pair(even, odd) → Word   two Floats, each rounded to BF16, `even` in the lower half
//   add_tile(sums, a, b)          sums = sums + a · b for 16 rows and 16 columns of BF16, and 8 numbers that
//                                 are multiplied with them, in an order of its own. Lane 4g + t has of
//                                 `a` columns 2t, 2t + 1 of rows g and g + 8, then 2t + 8, 2t + 9 of these;
//                                 of `b` columns 2t, 2t + 1, then 2t + 8, 2t + 9 of number g; of `sums`
//                                 numbers 2t and 2t + 1 of row g, then of row g + 8
//   permute(low, high, s) → Word  byte i is byte (s >> 4i & 7) of the eight bytes low, high
//   shared()                      K::kShared bytes of a kernel K that has such a constant, at a multiple of
//                                 16; what the lanes of this warp, and no others, tell each other
//   sync()                        what lanes of this warp have stored is seen by all of them
//
// cuda_warp-inl.h is one lane of the GPU's; lockstep_warp-inl.h has all 32 in arrays and needs no GPU, which
// is how tests run each kernel.
#pragma once

#if defined(__CUDACC__)
#define SLUICE_GPU __device__ __forceinline__
#define SLUICE_GPU_UNROLL _Pragma("unroll")
#define SLUICE_GPU_LOOP _Pragma("unroll 1")
#define SLUICE_GPU_HOST __host__ __device__ __forceinline__
#else
#define SLUICE_GPU inline
#define SLUICE_GPU_UNROLL
#define SLUICE_GPU_LOOP
#define SLUICE_GPU_HOST inline
#endif
