#include "device/cuda/cuda_device.h"

#include <memory>
#include <utility>

#include "device/cuda/cuda_calls.h"
#include "device/cuda/cuda_executor.h"
#include "device/cuda/cuda_memory.h"
#include "device/cuda/cuda_mover.h"
#include "device/cuda/mapped_pages.h"
#include "device/health.h"
#include "device/page_lock.h"
#include "device/queue_stream.h"

namespace sluice::device {
namespace {

// Has the host's buffers locked as long as it lives; `mapped`: for kernels, too, if it is not null.
class HostLocks final : public PageLock {
 public:
  HostLocks(CudaCalls& calls, Accountant* host, MappedPages* mapped)
      : calls_(calls), host_(host), mapped_(mapped) {
    if (host_ != nullptr) host_->crossing().attach(*this);
  }
  ~HostLocks() override {
    if (host_ != nullptr) host_->crossing().detach();
  }
  bool lock(std::byte* data, Bytes bytes) override {
    if (calls_.use() && (map(data, bytes) || calls_.api().lock(data, bytes, CudaLock::kCopies) == 0))
      return true;
    calls_.api().last_error();  // copies are slower, and nothing else
    return false;
  }
  void unlock(std::byte* data) override {
    if (mapped_ != nullptr) mapped_->remove(data);
    calls_.use();
    if (calls_.api().unlock(data) != 0) calls_.api().last_error();
  }

 private:
  // Locks them for kernels; false: they are not locked. Locked pages of which the GPU does not say where it
  // finds them are copied from, as others are.
  bool map(std::byte* data, Bytes bytes) {
    if (mapped_ == nullptr) return false;
    CudaApi& api = calls_.api();
    if (api.lock(data, bytes, CudaLock::kKernels) != 0) {
      api.last_error();
      return false;
    }
    void* on_device = nullptr;
    if (api.mapped_at(data, on_device) == 0)
      mapped_->add(data, bytes, static_cast<std::byte*>(on_device));
    else
      api.last_error();
    return true;
  }

  CudaCalls& calls_;
  Accountant* const host_;
  MappedPages* const mapped_;
};

// Whether kernels shall read the host's buffers where they are.
bool reads_in_place(CudaCalls& calls, const CudaOptions& options) {
  if (options.host == nullptr) return false;
  if (options.in_place) return *options.in_place;
  CudaProperties properties;
  calls.check(calls.api().properties(calls.index(), properties), "the GPU does not say what it is");
  return properties.shares_memory;
}

LinkOptions link_options(CudaOptions& options) {
  LinkOptions link;
  link.bytes_per_s = options.link_bytes_per_s;
  link.chunk = link.bytes_per_s ? chunk_of(*link.bytes_per_s) : CudaMover::kChunk;
  link.fault = std::move(options.fault);
  return link;
}

class CudaDevice final : public Device {
 public:
  CudaDevice(CudaApi& api, CudaOptions options)
      : clock_(options.clock != nullptr ? *options.clock : machine_clock()),
        calls_(opened(api, options.index, health_)),
        memory_(calls_, options.memory, &mapped_),
        locks_(calls_, options.host, reads_in_place(calls_, options) ? &mapped_ : nullptr),
        link_(link_options(options), std::make_unique<CudaMover>(calls_, memory_), health_, clock_) {}
  ~CudaDevice() override { calls_.use(); }

  std::string_view name() const override { return "cuda"; }
  Memory& memory() override { return memory_; }
  Stream& compute() override { return compute_; }
  Stream& predict() override { return predict_; }
  Link& link() override { return link_; }
  ThreadPool& pool() override { return pool_; }
  LaneCounters computed() const override { return busy_.counters(); }
  std::optional<Error> lost() const override { return health_.lost(); }
  std::optional<Address> in_place(std::span<const std::byte> host) const override {
    return mapped_.find(host);
  }

 private:
  static CudaCalls opened(CudaApi& api, int index, Health& health) {
    CudaCalls calls(api, index, health);
    calls.open();
    return calls;
  }
  std::unique_ptr<CudaExecutor> executor() { return std::make_unique<CudaExecutor>(calls_, memory_, busy_); }

  Clock& clock_;
  Health health_;
  CudaCalls calls_;
  MappedPages mapped_;
  CudaMemory memory_;
  HostLocks locks_;
  ThreadPool pool_{1};  // operations only launch
  CudaBusy busy_;
  ChunkedLink link_;
  QueueStream compute_{executor(), clock_, health_}, predict_{executor(), clock_, health_};
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(CudaOptions options) {
  CudaApi& api = cuda_api_or(options.api);
  return std::make_unique<CudaDevice>(api, std::move(options));
}

}  // namespace sluice::device
