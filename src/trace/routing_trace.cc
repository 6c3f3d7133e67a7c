#include "trace/routing_trace.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/setting.h"
#include "trace/sluice_trace.h"
#include "trace/trace_format.h"
#include "trace/trace_kinds.h"

namespace sluice::trace {

TraceSizes::TraceSizes(std::uint32_t layers, std::uint32_t experts, std::string_view path)
    : layers_(layers), experts_(experts) {
  const std::uint64_t all = std::uint64_t{layers} * experts;
  if (all > kMostExpertsInAll)
    throw Error(ErrorKind::kInvalid, "the trace has sizes of too many experts")
        .in(path)
        .expected(fmt::format("at most {} experts in all layers", kMostExpertsInAll))
        .found(fmt::format("{} layers of {}", layers, experts))
        .fix("copy the trace again, or record it again");
  memory_.resize(all);
  disk_.resize(all);
  exp_disk_.resize(all);
}

Bytes TraceSizes::missing_bytes(experts::ExpertId id, experts::Parts resident) const {
  if (experts::is_computable(resident)) return 0;
  const Bytes all = disk_[place(id)], exponents = exp_disk_[place(id)];
  if (resident.has(experts::Part::kSm)) return exponents;
  return resident.has(experts::Part::kExp) ? all - exponents : all;
}

void TraceSizes::set(experts::ExpertId id, const experts::ExpertBytes& memory, Bytes disk, Bytes exp_disk) {
  SLUICE_CHECK(id.layer < layers_ && id.index < experts_ && exp_disk <= disk);
  memory_[place(id)] = memory;
  disk_[place(id)] = disk;
  exp_disk_[place(id)] = exp_disk;
}

bool TraceSizes::operator==(const TraceSizes& other) const {
  if (layers_ != other.layers_ || experts_ != other.experts_ || disk_ != other.disk_ ||
      exp_disk_ != other.exp_disk_)
    return false;
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    const experts::ExpertBytes &a = memory_[i], &b = other.memory_[i];
    if (a.full != b.full || a.sm != b.sm || a.exp != b.exp || a.msb != b.msb || a.lsb != b.lsb) return false;
  }
  return true;
}

std::string recorded_device(std::string_view cache, std::string_view placement, std::uint64_t slots) {
  return fmt::format("cache {}, placement {}, {} slots of each layer", cache, placement, slots);
}

void describe_spans(const TraceEvent& event, std::vector<experts::SequenceSpan>& out) {
  const bool prompt = event.phase == TracePhase::kPrefill;
  const SequenceMark whole{.tokens = event.tokens};
  out.clear();
  std::uint32_t first = 0;
  for (const SequenceMark& mark : event.sequences.empty() ? std::span(&whole, 1) : event.sequences) {
    if (mark.tokens == 0) continue;
    out.push_back({.sequence = mark.sequence,
                   .first_token = first,
                   .tokens = mark.tokens,
                   .kind = prompt ? experts::StepKind::kPrompt : experts::StepKind::kDecode,
                   .first_of_forward = begins_forward(prompt, mark.position)});
    first += mark.tokens;
  }
}

std::unique_ptr<RoutingTrace> open_trace(const std::string& path) { return open_trace(open_bytes(path)); }

std::unique_ptr<RoutingTrace> open_trace(std::unique_ptr<ByteSource> source) {
  auto input = std::make_unique<TraceInput>(std::move(source));
  const std::string_view start = input->peek(16);
  if (start.starts_with(kTraceMagic)) return std::make_unique<SluiceTrace>(std::move(input));
  if (start.starts_with("MRT1")) return read_mrt_trace(std::move(input));
  if (start.starts_with("# route_trace")) return read_csv_trace(std::move(input));
  std::string found;
  for (const char c : start.substr(0, 8)) found += fmt::format("{:02x} ", static_cast<unsigned char>(c));
  throw Error(ErrorKind::kInvalid, "not a routing trace")
      .in(input->path(), 0)
      .expected("a file of `sluice trace`, a .mrt, or a .csv that begins with \"# route_trace\"")
      .found(start.empty() ? "an empty file" : found.substr(0, found.size() - 1))
      .fix("name another file, or record one: sluice trace MODEL " + Setting::kOut + " FILE");
}

}  // namespace sluice::trace
