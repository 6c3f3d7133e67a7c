#include "device/cuda/cuda_facts.h"

#include <algorithm>
#include <utility>

#include "device/accountant.h"
#include "device/cuda/cuda_calls.h"
#include "device/cuda/cuda_memory.h"
#include "device/cuda/cuda_owned.h"
#include "device/host_buffer.h"

namespace sluice::device {
namespace {

// What is locked for a moment.
class LockedBuffer {
 public:
  LockedBuffer(CudaCalls& calls, Bytes bytes)
      : calls_(calls), accountant_(bytes), buffer_(accountant_, Account::kTables, bytes) {
    calls.check(calls.api().lock(buffer_.data(), bytes, CudaLock::kCopies),
                "pages of the host cannot be locked");
  }
  ~LockedBuffer() { calls_.api().unlock(buffer_.data()); }
  LockedBuffer(const LockedBuffer&) = delete;
  LockedBuffer& operator=(const LockedBuffer&) = delete;
  std::byte* data() const { return buffer_.data(); }

 private:
  CudaCalls& calls_;
  Accountant accountant_;
  HostBuffer buffer_;
};

// What the GPU's memory is used for, by whomever; none if that cannot be known.
std::optional<Bytes> used_now(GpuMemoryUse* use, const std::string& bus_id) {
  return use != nullptr ? use->used(bus_id) : std::nullopt;
}

}  // namespace

CudaFacts cuda_facts(const CudaQuestion& question) {
  CudaApi& api = cuda_api_or(question.api);
  Health health;
  CudaCalls calls(api, question.index, health);
  calls.find();
  CudaProperties properties;
  calls.check(api.properties(question.index, properties), "the GPU does not say what it is");
  const std::unique_ptr<GpuMemoryUse> nvml = question.use != nullptr ? nullptr : open_nvml();
  GpuMemoryUse* const use = question.use != nullptr ? question.use : nvml.get();

  bool has_context = false;
  if (api.has_context(question.index, has_context) != 0) {
    api.last_error();
    has_context = true;  // for all that is known
  }
  const std::optional<Bytes> before = has_context ? std::nullopt : used_now(use, properties.bus_id);
  calls.open();
  CudaFacts facts{.index = question.index,
                  .name = properties.name,
                  .compute_major = properties.compute_major,
                  .compute_minor = properties.compute_minor,
                  .multiprocessors = properties.multiprocessors,
                  .copy_engines = properties.copy_engines,
                  .shares_memory = properties.shares_memory};
  calls.check(api.memory(facts.free, facts.total), "the GPU does not say what memory it has");
  const std::optional<Bytes> after = before ? used_now(use, properties.bus_id) : std::nullopt;
  facts.context_is_measured = before && after && *after > *before;
  facts.context = facts.context_is_measured ? *after - *before : kAssumedContext;
  return facts;
}

CudaLinkRates measure_cuda_link(int index, Bytes bytes, CudaApi* given) {
  constexpr int kTimes = 4;  // the first warms up
  CudaApi& api = cuda_api_or(given);
  Health health;
  CudaCalls calls(api, index, health);
  calls.open();
  CudaMemory memory(calls, bytes);
  const Block block = memory.allocate(Account::kStaging, bytes);
  const LockedBuffer host(calls, bytes);
  MarkPool marks(calls);
  const OwnedQueue queue(calls);
  void* const on_gpu = reinterpret_cast<void*>(static_cast<std::uintptr_t>(block.address().value));
  const auto rate = [&](CudaWay way) {
    double best_s = 0;
    for (int time = 0; time < kTimes; ++time) {
      const CudaMark begin = marks.put(queue.get());
      calls.check(way == CudaWay::kToDevice ? api.copy(on_gpu, host.data(), bytes, way, queue.get())
                                            : api.copy(host.data(), on_gpu, bytes, way, queue.get()),
                  "a copy over the link failed");
      const CudaMark end = marks.put(queue.get());
      calls.check(api.await(end), "a copy over the link failed");
      double took = 0;
      calls.check(api.seconds(begin, end, took), "the GPU does not say how long a copy took");
      marks.give(begin);
      marks.give(end);
      if (time > 0 && took > 0) best_s = best_s > 0 ? std::min(best_s, took) : took;
    }
    return best_s > 0 ? static_cast<double>(bytes) / best_s : 0;
  };
  const double to_device = rate(CudaWay::kToDevice);
  return {.to_device = to_device, .from_device = rate(CudaWay::kFromDevice)};
}

}  // namespace sluice::device
