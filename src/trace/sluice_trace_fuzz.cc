// Reads any bytes as a trace, once unchanged and once with all checksums corrected, so that the code behind
// the checksums is reached: either an Error, or events that keep the reader's promises.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/hash.h"
#include "trace/testing.h"
#include "trace/trace_format.h"

namespace {

using namespace sluice;         // NOLINT
using namespace sluice::trace;  // NOLINT

void read(const std::string& bytes) {
  try {
    all_events(*open_text(bytes));
  } catch (const Error&) {
  }
}

std::uint64_t hash(const std::string& bytes, std::size_t at, std::size_t length) {
  return xxh3(std::as_bytes(std::span(bytes.data() + at, length)));
}

void seal(std::string& bytes) {
  const auto length_at = [&](std::size_t at) {
    std::uint32_t length;
    std::memcpy(&length, bytes.data() + at, 4);
    return std::size_t{length};
  };
  if (bytes.size() < 16) return;
  const std::uint32_t version = (bytes[8] & 1) != 0 ? kTraceVersion1 : kTraceVersion2;
  std::memcpy(bytes.data() + 8, &version, 4);
  std::size_t at = 16 + length_at(12);
  if (at + 8 > bytes.size()) return;
  const std::uint64_t header = hash(bytes, 0, at);
  std::memcpy(bytes.data() + at, &header, 8);
  at += 8;
  while (at + kRecordHeadBytes <= bytes.size()) {
    const std::uint64_t head = hash(bytes, at, 8);
    std::memcpy(bytes.data() + at + 8, &head, 4);
    const std::size_t length = length_at(at + 4), payload = at + kRecordHeadBytes;
    if (length > bytes.size() || payload + length + kRecordTailBytes > bytes.size()) return;
    const std::uint64_t sum = hash(bytes, payload, length);
    std::memcpy(bytes.data() + payload + length, &sum, 8);
    at = payload + length + kRecordTailBytes;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(kTraceMagic);
  bytes.append(reinterpret_cast<const char*>(data), size);
  read(bytes);
  seal(bytes);
  read(bytes);
  return 0;
}
