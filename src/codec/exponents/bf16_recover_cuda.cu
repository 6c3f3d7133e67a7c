#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "base/error.h"
#include "codec/exponents/bf16_recover.h"

namespace sluice::codec {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWordsPerThread = 16;

// Two words of two exponents and two sign+mantissas: bytes `pair` and `pair`+1 of e and s.
__device__ std::uint32_t two_words(std::uint32_t e, std::uint32_t s, unsigned pair) {
  const unsigned spread = pair == 0 ? 0x4140 : 0x4342;  // byte, zero, next byte, zero
  const std::uint32_t exponents = __byte_perm(e, 0, spread), rest = __byte_perm(s, 0, spread);
  return (rest & 0x00800080u) << 8 | exponents << 7 | (rest & 0x007f007fu);
}

// All pointers aligned to 16 bytes; `groups` of 16 words.
__global__ void recover_groups(const uint4* __restrict__ exponents, const uint4* __restrict__ rest,
                               std::size_t groups, uint4* __restrict__ words) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= groups) return;
  const uint4 e = exponents[i], s = rest[i];
  words[2 * i] = {two_words(e.x, s.x, 0), two_words(e.x, s.x, 2), two_words(e.y, s.y, 0),
                  two_words(e.y, s.y, 2)};
  words[2 * i + 1] = {two_words(e.z, s.z, 0), two_words(e.z, s.z, 2), two_words(e.w, s.w, 0),
                      two_words(e.w, s.w, 2)};
}

__global__ void recover_one_by_one(const std::uint8_t* exponents, const std::uint8_t* rest, std::size_t count,
                                   std::uint8_t* words) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const unsigned e = exponents[i], s = rest[i], word = (s >> 7) << 15 | e << 7 | (s & 0x7fu);
  words[2 * i] = static_cast<std::uint8_t>(word);
  words[2 * i + 1] = static_cast<std::uint8_t>(word >> 8);
}

unsigned blocks(std::size_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ErrorKind::kIo, std::string("CUDA: ") + what).found(cudaGetErrorString(result));
}

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

}  // namespace

void queue_bf16_recovery(void* stream, const std::byte* exponents, const std::byte* sign_mantissas,
                         std::size_t count, std::byte* words) {
  const auto queue = static_cast<cudaStream_t>(stream);
  // Launches of at most 2^30 groups or words, far below the largest grid.
  constexpr std::size_t kMost = std::size_t{1} << 30;
  std::size_t done = 0;
  if (aligned(exponents) && aligned(sign_mantissas) && aligned(words)) {
    while (count - done >= kWordsPerThread) {
      const std::size_t groups =
          (count - done) / kWordsPerThread < kMost ? (count - done) / kWordsPerThread : kMost;
      recover_groups<<<blocks(groups), kThreads, 0, queue>>>(
          reinterpret_cast<const uint4*>(exponents + done),
          reinterpret_cast<const uint4*>(sign_mantissas + done), groups,
          reinterpret_cast<uint4*>(words + 2 * done));
      check(cudaGetLastError(), "recover_groups");
      done += groups * kWordsPerThread;
    }
  }
  while (done < count) {
    const std::size_t part = count - done < kMost ? count - done : kMost;
    recover_one_by_one<<<blocks(part), kThreads, 0, queue>>>(
        reinterpret_cast<const std::uint8_t*>(exponents + done),
        reinterpret_cast<const std::uint8_t*>(sign_mantissas + done), part,
        reinterpret_cast<std::uint8_t*>(words + 2 * done));
    check(cudaGetLastError(), "recover_one_by_one");
    done += part;
  }
}

void recover_bf16_on_device(const std::byte* exponents, const std::byte* sign_mantissas, std::size_t count,
                            std::byte* words) {
  queue_bf16_recovery(nullptr, exponents, sign_mantissas, count, words);
  check(cudaDeviceSynchronize(), "recover_bf16_on_device");
}

void copy_on_device(const std::byte* from, std::size_t bytes, std::byte* to) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice), "cudaMemcpyAsync");
  check(cudaDeviceSynchronize(), "copy_on_device");
}

}  // namespace sluice::codec
