// Finds every damage of a packed store: each byte of each of its files is covered by a checksum, by the rule
// that padding is zero, or by an exact size. Exponent chunks are decoded as well, so that one that was
// written wrong is found although its checksum is right.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/cpu.h"

namespace sluice::store {

// What an error says of the store.
enum class VerifyKind {
  kDamage,       // bytes are not those that were packed
  kUnsupported,  // it is of a version or kind that this program does not know; or damage that looks like that
  kUnread,       // the system refused to read it
  kBeside,  // the packed bytes are as they were: a sidecar is wrong, or a file is there that is not of it
};

struct VerifyError {
  VerifyKind kind = VerifyKind::kDamage;
  std::string file;  // relative to the store
  Bytes offset = 0;  // of the part, chunk or byte that is wrong
  std::string message;
  std::string expected, found;  // either may be empty
  std::string fix;
};

struct VerifyReport {
  std::uint64_t files = 0;  // looked at
  Bytes bytes = 0;
  std::vector<VerifyError> errors;  // ascending by (file, offset); at most kMaxVerifyErrors for one file
  bool ok() const { return errors.empty(); }
  bool only(VerifyKind kind) const;  // there are errors, and all are of this kind
};
inline constexpr std::size_t kMaxVerifyErrors = 100;

enum class VerifyDepth {
  kStored,  // every byte of the store, and that every chunk can be decoded
  kFull,    // and the source files, restored in memory, against their SHA-256; as kStored for family sliced
};

struct VerifyOptions {
  VerifyDepth depth = VerifyDepth::kStored;
  unsigned threads = 0;  // 0: one for every CPU
  Isa isa = best_isa();  // that decodes chunks, and merges words for kFull
  // Both are called on the thread that called verify().
  std::function<void(Bytes done, Bytes total)> on_progress{};
  std::function<bool()> interrupted{};
};

// Damage is in the report. Throws Error(kNotFound) or (kInvalid) if `store` is no directory at all, and
// (kInterrupted).
VerifyReport verify(const std::string& store, const VerifyOptions& options);

}  // namespace sluice::store
