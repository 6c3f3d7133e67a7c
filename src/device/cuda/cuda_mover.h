// Copies between the host's memory and a GPU's, by the engines of the GPU.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>

#include "device/access.h"
#include "device/chunked_link.h"
#include "device/cuda/cuda_calls.h"
#include "device/cuda/cuda_owned.h"

namespace sluice::device {

// Has a queue of its own for each direction. Memory of the host that is not page-locked can be copied, too,
// while its thread waits. References must outlive it.
class CudaMover final : public Mover {
 public:
  // Between two copies an engine stands still for some 8 µs, while it takes note of a mark. So chunks are
  // large where nothing limits the link: one takes 80 µs on PCIe 5. A thread that sleeps until it is over
  // wakes up as much later: two behind it keep the engine busy meanwhile, a third one makes up for a late
  // wake-up.
  static constexpr Bytes kChunk = 4 * kMiB;
  static constexpr std::size_t kMostUnderWay = 4;

  CudaMover(CudaCalls& calls, Gate& gate) : calls_(calls), gate_(gate) {}
  std::size_t most_under_way() const override { return kMostUnderWay; }
  void admit_this_thread() override { gate_.admit_this_thread(); }
  void start(const LinkChunk& chunk) override;
  std::optional<double> finish(bool back) override;
  std::shared_ptr<void> mark(bool back) override { return direction(back).under_way.back().end; }

 private:
  struct UnderWay {
    CudaMark begin;             // null: where the chunk before ended
    std::shared_ptr<void> end;  // a CudaMark, which streams may wait for, too
  };
  struct Direction {
    explicit Direction(CudaCalls& calls) : marks(calls), queue(calls) {}
    MarkPool marks;
    OwnedQueue queue;
    std::deque<UnderWay> under_way;
    std::shared_ptr<void> last_end;  // the end of the chunk before
  };
  Direction& direction(bool back) { return back ? from_device_ : to_device_; }

  CudaCalls& calls_;
  Gate& gate_;
  Direction to_device_{calls_}, from_device_{calls_};
};

}  // namespace sluice::device
