#include "base/files/background_writer.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"

namespace sluice {

namespace {
constexpr Bytes kLeastSync = 64 * kKiB;
constexpr std::chrono::milliseconds kLongestWait{250};
}  // namespace

struct BackgroundWriter::Impl {
  Impl(OutputFile output, Bytes ring_bytes)
      : file(std::move(output)), ring(ring_bytes), batch(std::max<std::size_t>(1, ring_bytes / 4)) {}

  void run() {
    Bytes unsynchronised = 0;
    std::unique_lock lock(mutex);
    while (true) {
      // No wake-up for every small write: a producer that makes little pays next to nothing.
      changed.wait_for(lock, kLongestWait,
                       [&] { return filled >= batch || ending || (cutting && filled > 0); });
      if (abandoned || (ending && filled == 0)) return;
      if (filled == 0) continue;
      const std::size_t begin = tail, count = std::min(filled, ring.size() - tail);
      lock.unlock();
      std::exception_ptr thrown;
      try {
        file.write(std::span<const std::byte>(ring).subspan(begin, count));
        unsynchronised += count;
        if (unsynchronised >= std::max<Bytes>(ring.size(), kLeastSync)) {
          file.sync();
          unsynchronised = 0;
        }
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      tail = (tail + count) % ring.size();
      filled -= count;
      if (thrown) {
        failure = thrown;
        filled = 0;
      }
      changed.notify_all();
      if (thrown) return;
    }
  }

  void end(bool abandon) {
    {
      const std::lock_guard lock(mutex);
      ending = true;
      abandoned = abandon;
    }
    changed.notify_all();
    if (thread.joinable()) thread.join();
  }

  OutputFile file;  // owned by the thread until it has ended, except for cut()
  // Bytes [tail, tail + filled), modulo the ring's size, are on their way to the file; the producer owns the
  // rest.
  std::vector<std::byte> ring;
  const std::size_t batch;  // the thread writes when this many bytes are waiting
  std::mutex mutex;         // protects the members below
  std::condition_variable changed;
  std::size_t tail = 0, filled = 0;
  bool ending = false, abandoned = false, cutting = false, closed = false;
  std::exception_ptr failure;
  std::thread thread;
};

BackgroundWriter::BackgroundWriter(OutputFile file, Bytes ring)
    : impl_(std::make_unique<Impl>(std::move(file), ring)) {
  SLUICE_CHECK(ring > 0);
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

BackgroundWriter::~BackgroundWriter() { impl_->end(true); }

void BackgroundWriter::write(std::span<const std::byte> data) {
  Impl& impl = *impl_;
  std::unique_lock lock(impl.mutex);
  SLUICE_CHECK(!impl.closed, impl.file.path());
  while (!data.empty()) {
    impl.changed.wait(lock, [&] { return impl.filled < impl.ring.size() || impl.failure; });
    if (impl.failure) std::rethrow_exception(impl.failure);
    const std::size_t head = (impl.tail + impl.filled) % impl.ring.size();
    const std::size_t room = impl.ring.size() - impl.filled;
    const std::size_t count = std::min({data.size(), room, impl.ring.size() - head});
    // The thread never reads bytes beyond `filled`, so the copy would be safe without the lock. Holding the
    // lock is still cheaper than unlocking and locking again.
    std::memcpy(impl.ring.data() + head, data.data(), count);
    data = data.subspan(count);
    impl.filled += count;
    if (impl.filled >= impl.batch) impl.changed.notify_all();
  }
  if (impl.failure) std::rethrow_exception(impl.failure);
}

void BackgroundWriter::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

void BackgroundWriter::cut(Bytes keep) {
  Impl& impl = *impl_;
  std::unique_lock lock(impl.mutex);
  SLUICE_CHECK(!impl.closed, impl.file.path());
  impl.cutting = true;
  impl.changed.notify_all();
  impl.changed.wait(lock, [&] { return impl.filled == 0 || impl.failure; });
  impl.cutting = false;
  // With nothing to write, the thread leaves the file alone while this call holds the lock.
  if (!impl.failure) {
    try {
      impl.file.cut(keep);
    } catch (...) {
      impl.failure = std::current_exception();
    }
  }
  if (impl.failure) std::rethrow_exception(impl.failure);
}

void BackgroundWriter::close() {
  Impl& impl = *impl_;
  if (!impl.closed) {
    impl.end(false);
    impl.closed = true;
    try {
      if (!impl.failure) impl.file.close();
    } catch (...) {
      impl.failure = std::current_exception();
    }
  }
  if (impl.failure) std::rethrow_exception(impl.failure);
}

}  // namespace sluice
