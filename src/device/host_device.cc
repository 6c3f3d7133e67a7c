#include <optional>

#include "device/chunked_link.h"
#include "device/device.h"
#include "device/health.h"
#include "device/host_memory.h"
#include "device/queue_stream.h"

namespace sluice::device {
namespace {

class HostDevice final : public Device {
 public:
  HostDevice(Accountant& accountant, unsigned threads) : memory_(accountant), pool_(threads) {}

  std::string_view name() const override { return "host"; }
  Memory& memory() override { return memory_; }
  Stream& compute() override { return compute_; }
  Stream& predict() override { return predict_; }
  Link& link() override { return link_; }
  ThreadPool& pool() override { return pool_; }
  LaneCounters computed() const override { return arithmetic_.pacer.counters(); }
  std::optional<Error> lost() const override { return std::nullopt; }

 private:
  HostMemory memory_;
  Health health_;
  ThreadPool pool_;
  Arithmetic arithmetic_{machine_clock()};
  ChunkedLink link_{{}, std::make_unique<MemoryMover>(memory_), health_, machine_clock()};
  QueueStream compute_{memory_, arithmetic_, health_}, predict_{memory_, arithmetic_, health_};
};

}  // namespace

std::unique_ptr<Device> make_host_device(Accountant& accountant, unsigned threads) {
  return std::make_unique<HostDevice>(accountant, threads);
}

}  // namespace sluice::device
