// Measures copies of experts over the link of a CUDA device, alone and while this CPU computes experts,
// beside plain copies of page-locked memory; checks what has arrived. --threads N: those that compute; else
// as many as there are CPUs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/machine/cpu.h"
#include "base/machine/thread_pool.h"
#include "codec/matrix_format.h"
#include "device/accountant.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_facts.h"
#include "device/host_buffer.h"
#include "device/space.h"
#include "kernels/context.h"
#include "kernels/products/products.h"
#include "measure.h"
#include "report.h"

namespace {

using namespace sluice;
using device::Account;
using device::Traffic;

constexpr std::size_t kRows = 4224, kColumns = 2048;  // three matrices of 1408 rows
constexpr Bytes kExpert = kRows * kColumns * 2;
constexpr std::size_t kExperts = 64;  // more than a cache of the CPU holds
constexpr std::size_t kCopies = 128, kUnderWay = 4, kRounds = 7;

// Experts, in memory that crosses the link.
class Experts {
 public:
  explicit Experts(device::Accountant& accountant)
      : buffer_(accountant, Account::kExperts, kExperts * kExpert) {
    std::mt19937_64 random(1);
    std::vector<std::uint16_t> words(kRows * kColumns);
    for (std::uint16_t& word : words) word = static_cast<std::uint16_t>(0x3c00 | (random() & 0x80ff));
    for (std::size_t i = 0; i < kExperts; ++i) {
      words[0] = static_cast<std::uint16_t>(i);
      std::memcpy(buffer_.data() + i * kExpert, words.data(), kExpert);
    }
  }
  std::span<const std::byte> bytes(std::size_t i) const {
    return {buffer_.data() + i % kExperts * kExpert, kExpert};
  }
  codec::MatrixRef matrix(std::size_t i) const {
    codec::MatrixRef matrix;
    matrix.format = &codec::kFormatBf16;
    matrix.shape = {kRows, kColumns};
    matrix.planes[0] = device::host_space().address(bytes(i).data());
    return matrix;
  }

 private:
  device::HostBuffer buffer_;
};

// Copies experts as a step does, a few at a time.
void copy_all(device::Device& device, const Experts& experts, const device::Block& there) {
  std::array<device::Ticket, kUnderWay> under_way;
  for (std::size_t i = 0; i < kCopies; ++i) {
    device::Ticket& ticket = under_way[i % kUnderWay];
    ticket.event().wait();
    ticket =
        device.link().copy(experts.bytes(i), there.address() + i % kUnderWay * kExpert, Traffic::kDemand);
  }
  for (const device::Ticket& ticket : under_way) ticket.event().wait();
}

bool has_arrived(device::Device& device, const Experts& experts, const device::Block& there) {
  std::vector<std::byte> found(kExpert);
  for (std::size_t i = kCopies - kUnderWay; i < kCopies; ++i) {
    device.link()
        .copy_back(there.address() + i % kUnderWay * kExpert, found, Traffic::kResult)
        .event()
        .wait();
    if (!std::ranges::equal(found, experts.bytes(i))) return false;
  }
  return true;
}

// Computes one expert after the other for a token with all threads, until it is told to stop.
class Host {
 public:
  Host(const Experts& experts, unsigned threads) : experts_(experts), pool_(threads) {
    context_.pool = &pool_;
    context_.isa = best_isa();
    const std::vector<float> x(kColumns, .5f);
    arranged_.resize(kernels::activation_floats(experts.matrix(0)));
    kernels::arrange_for(context_, experts.matrix(0), x.data(), 1, kColumns, arranged_.data());
  }
  void compute(std::size_t i) {
    kernels::matmul(context_, arranged_.data(), 1, experts_.matrix(i), {}, y_.data(), kRows);
  }
  std::size_t computed = 0;

  template <class Work>
  void beside(const Work& work) {
    std::atomic<bool> stop = false;
    std::thread thread([&] {
      for (; !stop; ++computed) compute(computed);
    });
    work();
    stop = true;
    thread.join();
  }

 private:
  const Experts& experts_;
  ThreadPool pool_;
  kernels::Context context_;
  std::vector<float> arranged_, y_ = std::vector<float>(kRows);
};

}  // namespace

int main(int argc, char** argv) try {
  bench::check_options(argc, argv, {"json", "threads"});
  const auto threads = static_cast<unsigned>(bench::whole_option(argc, argv, "threads", usable_cpus(), 1));
  bench::Report report("gpu_link", argc, argv);
  if (device::gpu_lack() != device::GpuLack::kNothing) {
    fmt::print("no CUDA device: nothing was measured\n");
    report.write();
    return 0;
  }
  device::Accountant accountant(8 * kGiB);
  const std::unique_ptr<device::Device> device =
      device::make_cuda_device({.memory = 256 * kMiB, .host = &accountant});
  {
    const Experts experts(accountant);
    const device::Block there = device->memory().allocate(Account::kExperts, kUnderWay * kExpert);
    Host host(experts, threads);
    constexpr double kBytes = static_cast<double>(kCopies * kExpert);
    const auto plain_s = [] { return kBytes / device::measure_cuda_link(0, 64 * kMiB).to_device; };
    std::vector<double> plain, plain_beside;  // seconds that as many bytes take
    double beside_s = 0;
    std::vector<bench::Workload> workloads = {
        {"copies of experts", [&](std::size_t) { copy_all(*device, experts, there); }},
        {"the same, while the CPU computes",
         [&](std::size_t round) {
           if (round == 0) host.computed = 0;
           const auto start = std::chrono::steady_clock::now();
           host.beside([&] { copy_all(*device, experts, there); });
           beside_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
         }},
        {"the CPU alone",
         [&](std::size_t) {
           for (std::size_t i = 0; i < kCopies; ++i) host.compute(i);
         }},
        {"plain", [&](std::size_t round) {
           const double alone = plain_s();
           const std::size_t computed = host.computed;
           host.beside([&] {
             if (round > 0) plain_beside.push_back(plain_s());
           });
           host.computed = computed;
           if (round > 0) plain.push_back(alone);
         }}};
    bench::measure(workloads, kRounds);
    workloads.pop_back();
    bench::require(has_arrived(*device, experts, there), "experts on the device");
    const auto rate = [](const std::vector<double>& seconds) {
      return kBytes / bench::quantile(seconds, 0.5);
    };
    const auto show_plain = [&](const char* name, const std::vector<double>& seconds) {
      fmt::print("{:36}{:8.1f} GB/s\n", name, 1e-9 * rate(seconds));
      report.add({.name = name, .bytes = kBytes, .seconds = seconds});
    };
    show_plain("plain copies, page-locked", plain);
    show_plain("plain copies, while the CPU computes", plain_beside);
    for (const bench::Workload& each : workloads) {
      fmt::print("{:36}{:8.1f} GB/s   {:5.2f} of plain, {:5.2f} of plain while it computes   {}\n", each.name,
                 1e-9 * rate(each.seconds), rate(each.seconds) / rate(plain),
                 rate(each.seconds) / rate(plain_beside), bench::times(each));
      report.add({.name = each.name,
                  .bytes = kBytes,
                  .seconds = each.seconds,
                  .limit = "plain copies, page-locked",
                  .shares = bench::shares_of(kBytes, each.seconds, kBytes, plain)});
    }
    fmt::print("meanwhile the CPU computed {:.1f} GB/s of experts\n",
               1e-9 * static_cast<double>(host.computed * kExpert) / beside_s);
  }
  report.write();
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
