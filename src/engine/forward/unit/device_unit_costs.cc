#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>

#include "engine/forward/mlp.h"
#include "engine/forward/unit/device_unit.h"

namespace sluice::engine {
namespace {

constexpr int kRepeats = 3;
constexpr std::array<std::uint32_t, 3> kTokens = {1, 4, 16};

double median_seconds(const std::function<void()>& work) {
  std::array<double, kRepeats> seconds;
  for (double& one : seconds) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    one = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  std::ranges::sort(seconds);
  return seconds[kRepeats / 2];
}

}  // namespace

experts::DeviceCosts DeviceUnit::measure(device::Accountant& host) {
  using device::Traffic;
  const Bytes expert = store_.bytes_each();
  const device::HostBuffer bytes(host, device::Account::kStaging, expert);
  const device::Address there = store_.spare_buffer();
  device::Link& link = device_.link();
  experts::DeviceCosts costs;
  costs.transfer = median_seconds([&] { link.copy(bytes.span(), there, Traffic::kUpdate).event().wait(); });
  const std::span<std::byte> few = bytes.span().first(std::min<Bytes>(expert, sizeof(float)));
  costs.sync = median_seconds([&] { link.copy_back(there, few, Traffic::kUpdate).event().wait(); });
  costs.row = std::max(0.0, costs.transfer - costs.sync) * static_cast<double>(hidden_ * sizeof(float)) /
              static_cast<double>(expert);
  double least = 0;  // a measured time that falls is noise
  for (const std::uint32_t tokens : kTokens) {
    if (tokens > most_tokens_) break;
    least = std::max(least, median_seconds([&] {
                       device_.compute().enqueue(
                           {[&, tokens](const device::Access& access) { run_sample(there, tokens, access); },
                            {{expert, tokens}}});
                       device_.compute().synchronize();
                     }));
    costs.run.measured.emplace_back(tokens, least);
  }
  return costs;
}

// The buffer's content is as it was copied: zeros.
void DeviceUnit::run_sample(device::Address expert, std::size_t tokens, const device::Access& access) const {
  const Bytes matrix = hidden_ * width_ * sizeof(std::uint16_t);
  const std::byte* const words = access.data(expert, 3 * matrix);
  const auto floats = [&](device::Address at, std::size_t count) {
    return reinterpret_cast<float*>(access.data(at, count * sizeof(float)));
  };
  Mlp mlp{.gate = codec::word_matrix(words, DType::kBF16, width_, hidden_),
          .up = codec::word_matrix(words + matrix, DType::kBF16, width_, hidden_),
          .down = codec::word_matrix(words + 2 * matrix, DType::kBF16, hidden_, width_),
          .out = floats(layout_.rows[0], tokens * hidden_)};
  for (const Form& form : layout_.forms)
    mlp.inputs[static_cast<std::size_t>(form.form)] = floats(form.inputs, tokens * form.floats);
  run_mlp(mlp, tokens, access);
}

}  // namespace sluice::engine
