#include "store/pack/source_hasher.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/files/file.h"
#include "base/hash.h"

namespace sluice::store {
namespace {

constexpr Bytes kStep = SourceHasher::kMemory;

}  // namespace

SourceHasher::SourceHasher(std::vector<Input> files)
    : files_(std::move(files)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

SourceHasher::~SourceHasher() = default;

void SourceHasher::allow(Bytes position) {
  const std::lock_guard lock(mutex_);
  if (position <= allowed_) return;
  allowed_ = position;
  allowed_changed_.notify_all();
}

void SourceHasher::allow_all() { allow(std::numeric_limits<Bytes>::max()); }

void SourceHasher::run(const std::stop_token& stop) {
  try {
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kStep);
    Bytes start = 0;  // the start of the file, when all files are placed one after another
    for (std::size_t i = 0; i < files_.size(); start += files_[i].size, ++i) {
      if (files_[i].known) {
        position_.store(start + files_[i].size, std::memory_order_relaxed);
        continue;
      }
      const InputFile file = InputFile::open(files_[i].path);
      if (file.size() != files_[i].size) {
        throw Error(ErrorKind::kInvalid, "the file changed while it was packed")
            .in(file.path())
            .expected(fmt::format("{} bytes", files_[i].size))
            .found(fmt::format("{}", file.size()))
            .fix("pack it again once nothing writes to it");
      }
      Sha256Stream sum;
      for (Bytes at = 0; at < file.size();) {
        const Bytes length = std::min(kStep, file.size() - at);
        {
          std::unique_lock lock(mutex_);
          const bool allowed =
              allowed_changed_.wait(lock, stop, [&] { return allowed_ >= start + at + length; });
          if (!allowed || stop.stop_requested()) return;  // a wait for what is allowed already sees no stop
        }
        const std::span<std::byte> bytes(buffer.get(), static_cast<std::size_t>(length));
        file.read_at(at, bytes);
        sum.update(bytes);
        file.drop_cache(at, length);
        at += length;
        position_.store(start + at, std::memory_order_relaxed);
      }
      const std::lock_guard lock(mutex_);
      finished_.emplace_back(i, sum.hex_digest());
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  done_ = true;
}

std::vector<std::pair<std::size_t, std::string>> SourceHasher::take_finished() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  return std::exchange(finished_, {});
}

bool SourceHasher::done() {
  const std::lock_guard lock(mutex_);
  return done_;
}

}  // namespace sluice::store
