// Rebuilds BF16 words from exponent and sign+mantissa planes on a CUDA device: the recovery kernel of ZipMoE
// (arXiv 2601.21198, section 3); the CPU versions are in bf16_split.h. All pointers must be
// device-accessible: on unified memory the device reads the planes where the decode workers left them, and
// nothing is copied.
#pragma once

#include <cstddef>

namespace sluice::codec {

// Launches on the default stream and waits. `words` is 2·count bytes; no pointer needs any alignment (16
// bytes is fastest); regions do not overlap. Bytes moved: 2·count in and 2·count out. Error(kUnsupported) in
// a build without CUDA, Error(kIo) if the device fails.
void recover_bf16_on_device(const std::byte* exponents, const std::byte* sign_mantissas, std::size_t count,
                            std::byte* words);

// The same, queued on `stream` (a cudaStream_t) behind all that is there, without waiting.
void queue_bf16_recovery(void* stream, const std::byte* exponents, const std::byte* sign_mantissas,
                         std::size_t count, std::byte* words);

// Copies `bytes` on the device in the same way; the recovery kernel is measured against this copy.
void copy_on_device(const std::byte* from, std::size_t bytes, std::byte* to);

}  // namespace sluice::codec
