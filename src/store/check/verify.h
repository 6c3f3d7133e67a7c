// Finds every damage of a packed store: each byte of each file is covered by a checksum, by the rule that
// padding is zero, or by an exact size. Exponent chunks are also decoded, so that a chunk that was written
// wrong is found although its checksum is right.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/machine/cpu.h"
#include "store/memory_check.h"

namespace sluice::store {

// What an error means for the store.
enum class VerifyKind {
  kDamage,  // bytes differ from those that were packed
  // The store has a version or kind that this program does not know; or damage that looks like that.
  kUnsupported,
  kUnread,  // the system refused to read it
  // The packed bytes are intact: a sidecar is wrong, or a file exists that does not belong to the store.
  kBeside,
};

struct VerifyError {
  VerifyKind kind = VerifyKind::kDamage;
  std::string file;  // relative to the store
  Bytes offset = 0;  // the place of the wrong part, chunk or byte
  std::string message;
  std::string expected, found;  // either may be empty
  std::string fix;
};

struct VerifyReport {
  std::uint64_t files = 0;          // files examined
  Bytes bytes = 0;                  // looked at, as on_progress counts them
  std::vector<VerifyError> errors;  // ascending by (file, offset); at most kMaxVerifyErrors for one file
  bool ok() const { return errors.empty(); }
  bool only(VerifyKind kind) const;  // whether there are errors, all of this kind
};
inline constexpr std::size_t kMaxVerifyErrors = 100;

enum class VerifyDepth {
  kStored,  // every byte of the store, and whether every chunk decodes
  // Also the source files, restored in memory, against their SHA-256; same as kStored for family sliced.
  kFull,
};

struct VerifyOptions {
  VerifyDepth depth = VerifyDepth::kStored;
  unsigned threads = 0;  // 0: one for every CPU
  Isa isa = best_isa();  // for decoding chunks, and for merging words with kFull
  // For what the threads hold, fewer of them where it would not fit: each has a chunk that it decodes. One
  // thread, and with kFull one run of words (restore.h), always passes, unless check_memory refuses it.
  Bytes memory = 512 * kMiB;
  MemoryCheck check_memory{};
  // Both are called on the thread that called verify().
  std::function<void(Bytes done, Bytes total)> on_progress{};
  std::function<bool()> interrupted{};
};

// Damage is in the report. Throws Error(kNotFound) or (kInvalid) if `store` is not a directory at all, and
// (kInterrupted).
VerifyReport verify(const std::string& store, const VerifyOptions& options);

}  // namespace sluice::store
