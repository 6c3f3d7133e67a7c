#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/accountant.h"
#include "device/memory.h"
#include "device/space.h"
#include "kernels/gpu/cuda/cuda_bed.h"
#include "kernels/gpu/cuda/cuda_check.h"
#include "kernels/gpu/cuda/cuda_products.h"
#include "kernels/gpu/gpu_kernels.h"
#include "kernels/gpu/run_recover-inl.h"
#include "kernels/products/packed/packed_groups.h"

namespace sluice::kernels::gpu {
namespace {

constexpr Bytes kPlace = 256;  // what addresses are multiples of

class BedSpace final : public device::Space {
 public:
  std::string_view name() const override { return "CUDA test bed"; }
};

// One block of the device's memory; what is taken is given back all at once.
class BedMemory final : public device::Memory {
 public:
  BedMemory(device::Accountant& accountant, Bytes bytes) : Memory(accountant), bytes_(bytes) {
    void* base = nullptr;
    check_cuda(cudaMalloc(&base, bytes), "cudaMalloc");
    base_ = static_cast<std::byte*>(base);
  }
  ~BedMemory() override { static_cast<void>(cudaFree(base_)); }

  const device::Space& space() const override { return space_; }
  Bytes cost(Bytes bytes) const override { return (bytes + kPlace - 1) / kPlace * kPlace; }
  std::byte* reserve(Bytes bytes) {
    if (cost(bytes) > bytes_ - used_)
      throw Error(ErrorKind::kBudget, "the test bed has too little memory")
          .expected(std::to_string(bytes))
          .found(std::to_string(bytes_ - used_));
    std::byte* const at = base_ + used_;
    used_ += cost(bytes);
    return at;
  }
  Bytes used() const { return used_; }
  void reset(Bytes used) { used_ = used; }
  device::Address address(const std::byte* at) const {
    return {&space_, reinterpret_cast<std::uint64_t>(at)};
  }

 private:
  device::Address take(device::Account, Bytes bytes) override { return address(reserve(bytes)); }
  void give(device::Account, device::Address, Bytes) override {}

  BedSpace space_;
  const Bytes bytes_;
  Bytes used_ = 0;
  std::byte* base_ = nullptr;
};

__global__ void read_all(const uint4* p, std::size_t count, unsigned* out) {
  uint4 sum = {0, 0, 0, 0};
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + 3 * step < count; i += 4 * step) {
    const uint4 a = __ldcs(p + i), b = __ldcs(p + i + step), c = __ldcs(p + i + 2 * step),
                d = __ldcs(p + i + 3 * step);
    sum.x ^= a.x ^ b.x ^ c.x ^ d.x;
    sum.y ^= a.y ^ b.y ^ c.y ^ d.y;
    sum.z ^= a.z ^ b.z ^ c.z ^ d.z;
    sum.w ^= a.w ^ b.w ^ c.w ^ d.w;
  }
  for (; i < count; i += step) sum.x ^= p[i].x ^ p[i].y ^ p[i].z ^ p[i].w;
  if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x12345678u) *out = 1;  // so that nothing is left out
}

class Bed final : public CudaBed, private device::Gate {
 public:
  Bed(Bytes bytes, const GpuKernelOptions& kernels, const cudaDeviceProp& properties)
      : properties_(properties),
        accountant_(bytes + kernels.room + 2 * kGpuListBytes),
        memory_(accountant_, accountant_.budget()),
        kernels_(make_gpu_kernels(memory_, kernels)),
        launcher_(std::in_place, memory_, GpuKernelOptions{}),
        kept_(memory_.used()) {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    void* fault = nullptr;
    check_cuda(cudaHostAlloc(&fault, sizeof(*fault_), cudaHostAllocMapped), "cudaHostAlloc");
    fault_ = static_cast<std::uint32_t*>(fault);
    *fault_ = 0;
  }
  ~Bed() override {
    static_cast<void>(cudaStreamSynchronize(stream_));
    kernels_.reset();
    launcher_.reset();
    static_cast<void>(cudaStreamDestroy(stream_));
    static_cast<void>(cudaFreeHost(fault_));
  }

  std::string name() const override {
    return std::string(properties_.name) + ", " + std::to_string(properties_.totalGlobalMem >> 30) +
           " GiB, " + std::to_string(properties_.multiProcessorCount) + " multiprocessors, L2 " +
           std::to_string(properties_.l2CacheSize >> 20) + " MiB";
  }
  Bytes cache_bytes() const override { return static_cast<Bytes>(properties_.l2CacheSize); }

  void run(const Launches& launches) override {
    const Bytes used = memory_.used();
    {
      const device::Access access(*this, {stream_, fault_});
      launches(*kernels_, access);
    }
    wait();
    for (const auto& [host, copy] : copies_)
      check_cuda(cudaMemcpy(reinterpret_cast<void*>(host), copy.device, copy.bytes, cudaMemcpyDeviceToHost),
                 "cudaMemcpy of a result");
    copies_.clear();
    memory_.reset(used);
    look_for_faults();
  }

  device::Address room(Bytes bytes) override { return memory_.address(memory_.reserve(bytes)); }
  device::Address put(std::span<const std::byte> bytes) override {
    std::byte* const at = memory_.reserve(bytes.size());
    check_cuda(cudaMemcpy(at, bytes.data(), bytes.size(), cudaMemcpyHostToDevice),
               "cudaMemcpy of an operand");
    return memory_.address(at);
  }
  void get(device::Address from, std::span<std::byte> to) override {
    wait();
    check_cuda(cudaMemcpy(to.data(), pointer(from), to.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  }
  void clear() override { memory_.reset(kept_); }

  void recover(const device::Access& access, const codec::MatrixRef& matrix, device::Address words) override {
    recover_words(*launcher_, access, matrix, words);
  }
  void copy(const device::Access& access, device::Address from, device::Address to, Bytes bytes) override {
    check_cuda(cudaMemcpyAsync(access.data(to, bytes), access.data(from, bytes), bytes,
                               cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(access.queue().stream)),
               "cudaMemcpyAsync of a copy");
  }

  double seconds(int rounds, const Launches& launches) override {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    {
      const device::Access access(*this, {stream_, fault_});
      launches(*kernels_, access);
    }
    check_cuda(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    check_cuda(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
    const double median =
        median_of(rounds, [&] { check_cuda(cudaGraphLaunch(ready, stream_), "cudaGraphLaunch"); });
    check_cuda(cudaGraphExecDestroy(ready), "cudaGraphExecDestroy");
    check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
    look_for_faults();
    return median;
  }

  double read_rate(device::Address from, Bytes bytes) override {
    const auto* const p = reinterpret_cast<const uint4*>(pointer(from));
    double best = 0;
    for (const int blocks : {4, 8, 16}) {
      const double seconds = median_of(5, [&] {
        read_all<<<static_cast<unsigned>(blocks * properties_.multiProcessorCount), 256, 0, stream_>>>(
            p, bytes / 16, fault_ + 0);
        check_cuda(cudaGetLastError(), "read_all");
      });
      best = std::max(best, static_cast<double>(bytes) / seconds);
    }
    *fault_ = 0;
    return best;
  }

 private:
  struct Copy {
    std::byte* device;
    Bytes bytes;
  };

  void admit_this_thread() override {}
  void dismiss_this_thread() override {}
  void open() override {}
  void close() override {}
  std::byte* data(device::Address address, Bytes bytes) const override {
    if (address.space == &memory_.space()) return pointer(address);
    SLUICE_CHECK(address.space == &device::host_space(), std::string(address.space->name()));
    const auto found = copies_.find(address.value);
    if (found != copies_.end()) {
      SLUICE_CHECK(bytes <= found->second.bytes, std::to_string(bytes));
      return found->second.device;
    }
    const Bytes offset = address.value % kPlace;
    std::byte* const there = memory_.reserve(bytes + offset) + offset;
    check_cuda(cudaMemcpy(there, reinterpret_cast<const void*>(address.value), bytes, cudaMemcpyHostToDevice),
               "cudaMemcpy of an operand");
    copies_[address.value] = {there, bytes};
    return there;
  }

  static std::byte* pointer(device::Address address) { return reinterpret_cast<std::byte*>(address.value); }
  void wait() { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }
  void look_for_faults() {
    const std::uint32_t fault = *fault_;
    *fault_ = 0;
    if (fault != 0) throw_damaged();
  }

  template <class Work>
  double median_of(int rounds, const Work& work) {
    cudaEvent_t begin = nullptr, end = nullptr;
    check_cuda(cudaEventCreate(&begin), "cudaEventCreate");
    check_cuda(cudaEventCreate(&end), "cudaEventCreate");
    std::vector<double> seconds;
    for (int round = 0; round <= rounds; ++round) {  // the first does not count
      check_cuda(cudaEventRecord(begin, stream_), "cudaEventRecord");
      work();
      check_cuda(cudaEventRecord(end, stream_), "cudaEventRecord");
      wait();
      float milliseconds = 0;
      check_cuda(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
      if (round > 0) seconds.push_back(1e-3 * milliseconds);
    }
    static_cast<void>(cudaEventDestroy(begin));
    static_cast<void>(cudaEventDestroy(end));
    std::ranges::sort(seconds);
    return seconds[seconds.size() / 2];
  }

  const cudaDeviceProp properties_;
  device::Accountant accountant_;
  mutable BedMemory memory_;
  std::unique_ptr<UnitKernels> kernels_;
  std::optional<CudaLauncher> launcher_;
  const Bytes kept_;  // the kernels' own
  cudaStream_t stream_ = nullptr;
  std::uint32_t* fault_ = nullptr;
  mutable std::map<std::uint64_t, Copy> copies_;  // by the address here
};

}  // namespace

std::unique_ptr<CudaBed> CudaBed::make(Bytes memory, const GpuKernelOptions& kernels, std::string& why) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess || count == 0) {
    why = result == cudaSuccess ? "there is no CUDA device" : cudaGetErrorString(result);
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  return std::make_unique<Bed>(memory, kernels, properties);
}

}  // namespace sluice::kernels::gpu
