#include "device/choice/device_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/unknown_name.h"

namespace sluice::device {
namespace {

constexpr std::string_view kCuda = "cuda", kEmulated = "emulated", kLinkPart = ",link=";
constexpr unsigned kMostIndex = 255;

// Empty: `text` names no CUDA device.
std::optional<std::string_view> behind_cuda(std::string_view text) {
  if (!text.starts_with(kCuda)) return std::nullopt;
  const std::string_view rest = text.substr(kCuda.size());
  const bool ends = rest.empty() || rest.front() == ':' || rest.front() == ',';
  return ends ? std::optional(rest) : std::nullopt;
}

unsigned read_index(std::string_view digits, std::string_view text, std::string_view where) {
  unsigned index = 0;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, index);
  if (error == std::errc() && at == end && !digits.empty() && index <= kMostIndex) return index;
  throw Error(ErrorKind::kUsage, "this is no index of a CUDA device")
      .in(where)
      .expected(fmt::format("cuda, or cuda:N with N from 0 to {}", kMostIndex))
      .found(fmt::format("\"{}\"", text))
      .fix("write cuda for the first one; sluice version lists those that are there");
}

CudaSpec parse_cuda(std::string_view rest, std::string_view text, std::string_view where) {
  CudaSpec spec;
  if (const std::size_t at = rest.find(kLinkPart); at != rest.npos) {
    spec.link_bytes_per_s = parse_link_rate(rest.substr(at + kLinkPart.size()), where);
    rest = rest.substr(0, at);
  }
  if (!rest.empty()) spec.index = read_index(rest.starts_with(':') ? rest.substr(1) : "", text, where);
  return spec;
}

std::optional<double> slower(const std::optional<double>& rate, double dilation) {
  return rate ? std::optional(*rate / dilation) : std::nullopt;
}

double seconds(Bytes bytes, const std::optional<double>& rate) {
  return rate ? static_cast<double>(bytes) / *rate : 0;
}

}  // namespace

std::string_view DeviceSpec::kind() const { return is_played() ? kEmulated : kCuda; }

bool DeviceSpec::is_unpaced() const {
  const EmulatedSpec* const played = emulated();
  return played != nullptr && !(played->link_bytes_per_s && played->compute_bytes_per_s);
}

std::optional<double> DeviceSpec::link_limit() const {
  if (const CudaSpec* const gpu = cuda()) return gpu->link_bytes_per_s;
  return slower(emulated()->link_bytes_per_s, dilation());
}

std::optional<double> DeviceSpec::host_limit() const {
  return is_played() ? slower(emulated()->host_bytes_per_s, dilation()) : std::nullopt;
}

double DeviceSpec::dilation() const { return is_played() ? emulated()->dilation : 1; }
unsigned DeviceSpec::threads() const { return is_played() ? emulated()->threads : 1; }

unsigned DeviceSpec::attention_items() const {
  constexpr unsigned kOfGpu = 64;  // a few warps for each multiprocessor, and a few MiB of scores
  return is_played() ? threads() : kOfGpu;
}
bool DeviceSpec::full_duplex() const { return is_played() ? emulated()->full_duplex : true; }

double DeviceSpec::least_copy_s(Bytes expert) const {
  return seconds(expert, link_limit()) + (is_played() ? emulated()->latency_s * dilation() : 0);
}

double DeviceSpec::least_compute_s(Bytes expert) const {
  if (!is_played()) return 0;
  return std::max(seconds(expert, slower(emulated()->compute_bytes_per_s, dilation())),
                  seconds(expert, host_limit()));
}

void DeviceSpec::limit_link(double bytes_per_s) {
  std::visit(
      [&](auto& spec) {
        spec.link_bytes_per_s = std::min(spec.link_bytes_per_s.value_or(bytes_per_s), bytes_per_s);
      },
      spec_);
}

DeviceSpec parse_device_spec(std::string_view text, std::string_view where) {
  if (const auto rest = behind_cuda(text)) return parse_cuda(*rest, text, where);
  const std::string_view kind = text.substr(0, text.find(':'));
  if (kind == kEmulated) return parse_emulated_spec(text, where);
  throw unknown_name(
      where, kind,
      {std::string(kNoDevice), std::string(kAnyDevice), std::string(kCuda), std::string(kEmulated)},
      "no such device can compute",
      "write for example cuda, emulated:link=2GB/s,latency=20us, or none for the host alone")
      .expected("auto, none, cuda, cuda:N, emulated or emulated:KEY=VALUE,…")
      .found(fmt::format("\"{}\"", text));
}

std::string to_text(const DeviceSpec& spec) {
  const CudaSpec* const gpu = spec.cuda();
  if (gpu == nullptr) return to_text(*spec.emulated());
  return fmt::format(
      "{}:{}{}", kCuda, gpu->index,
      gpu->link_bytes_per_s ? fmt::format("{}{:.0f}B/s", kLinkPart, *gpu->link_bytes_per_s) : "");
}

}  // namespace sluice::device
