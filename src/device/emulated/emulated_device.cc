#include "device/emulated/emulated_device.h"

#include <memory>
#include <utility>

#include "device/emulated/emulated_memory.h"
#include "device/health.h"
#include "device/queue_stream.h"

namespace sluice::device {
namespace {

std::optional<double> dilated(const std::optional<double>& bytes_per_s, double dilation) {
  return bytes_per_s ? std::optional(*bytes_per_s / dilation) : std::nullopt;
}

LinkOptions link_options(EmulatedOptions& options) {
  const EmulatedSpec& spec = options.spec;
  LinkOptions link;
  link.bytes_per_s = dilated(spec.link_bytes_per_s, spec.dilation);
  link.latency_s = spec.latency_s * spec.dilation;
  link.full_duplex = spec.full_duplex;
  if (link.bytes_per_s) link.chunk = chunk_of(*link.bytes_per_s);
  link.fault = std::move(options.fault);
  return link;
}

class EmulatedDevice final : public Device {
 public:
  explicit EmulatedDevice(EmulatedOptions options)
      : clock_(options.clock != nullptr ? *options.clock : machine_clock()),
        memory_(options.memory, options.guard.value_or(default_guard())),
        pool_(make_pool(memory_.arena(), options.spec.threads)),
        arithmetic_(clock_),
        link_(link_options(options), std::make_unique<MemoryMover>(memory_.arena()), health_, clock_) {
    arithmetic_.bytes_per_s = dilated(options.spec.compute_bytes_per_s, options.spec.dilation);
    if (const auto host = dilated(options.spec.host_bytes_per_s, options.spec.dilation))
      host_pace_ = std::make_unique<HostPace>(*host, clock_);
  }

  std::string_view name() const override { return "emulated"; }
  Memory& memory() override { return memory_; }
  Stream& compute() override { return compute_; }
  Stream& predict() override { return predict_; }
  Link& link() override { return link_; }
  ThreadPool& pool() override { return *pool_; }
  LaneCounters computed() const override { return arithmetic_.pacer.counters(); }
  HostPace* host_pace() const override { return host_pace_.get(); }
  std::optional<Error> lost() const override { return health_.lost(); }

 private:
  // Its workers have the rights of the thread that starts them.
  static std::unique_ptr<ThreadPool> make_pool(Gate& gate, unsigned threads) {
    gate.admit_this_thread();
    auto pool = std::make_unique<ThreadPool>(threads);
    gate.dismiss_this_thread();
    return pool;
  }

  Clock& clock_;
  Health health_;
  EmulatedMemory memory_;
  std::unique_ptr<ThreadPool> pool_;
  Arithmetic arithmetic_;
  std::unique_ptr<HostPace> host_pace_;  // null: the host takes its real time
  ChunkedLink link_;
  QueueStream compute_{memory_.arena(), arithmetic_, health_};
  QueueStream predict_{memory_.arena(), arithmetic_, health_};
};

}  // namespace

std::unique_ptr<Device> make_emulated_device(EmulatedOptions options) {
  return std::make_unique<EmulatedDevice>(std::move(options));
}

}  // namespace sluice::device
