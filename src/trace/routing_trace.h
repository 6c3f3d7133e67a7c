// Recorded routing, whoever recorded it: one interface over our own traces (docs/trace-format.md), the `.mrt`
// files of DeepSeek-V2-Lite, and the `.csv` files of BigMoeOnEdge (docs/replay.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experts/ids.h"
#include "experts/router.h"
#include "trace/byte_source.h"

namespace sluice::trace {

// Sizes of all experts of a model of `layers` × `experts`.
class TraceSizes final : public experts::ExpertSizes {
 public:
  // A file of few bytes may claim many experts of one size: this is what a claim may cost, 40 bytes each.
  static constexpr std::uint64_t kMostExpertsInAll = 1 << 20;
  // Error(kInvalid) naming `path` for more experts.
  TraceSizes(std::uint32_t layers, std::uint32_t experts, std::string_view path = "trace");
  experts::ExpertBytes bytes(experts::ExpertId id) const override { return memory_[place(id)]; }
  // What reading all of it asks of the disk; what reading its exponents alone does.
  Bytes disk_bytes(experts::ExpertId id) const { return disk_[place(id)]; }
  Bytes exp_disk_bytes(experts::ExpertId id) const { return exp_disk_[place(id)]; }
  // What reading asks of the disk if `resident` is in memory already.
  Bytes missing_bytes(experts::ExpertId id, experts::Parts resident) const;
  void set(experts::ExpertId id, const experts::ExpertBytes& memory, Bytes disk, Bytes exp_disk = 0);
  std::uint32_t layers() const { return layers_; }
  std::uint32_t experts() const { return experts_; }
  bool operator==(const TraceSizes& other) const;

 private:
  std::size_t place(experts::ExpertId id) const { return std::size_t{id.layer} * experts_ + id.index; }
  std::uint32_t layers_, experts_;
  std::vector<experts::ExpertBytes> memory_;  // (L × N)
  std::vector<Bytes> disk_, exp_disk_;        // (L × N)
};

// What a trace says about the model that it was recorded from.
struct TraceHeader {
  std::string format;         // "trace" "mrt" "csv"
  std::string architecture;   // empty: not said
  std::uint32_t layers = 0;   // L, sparse ones
  std::uint32_t experts = 0;  // N
  std::uint32_t top_k = 0;
  std::optional<std::uint64_t> identity;  // of the model (docs/trace-format.md, section 2)
  std::optional<TraceSizes> sizes;        // none: the trace does not say
  bool logits = false;                    // events have all router logits
};

enum class TracePhase : std::uint8_t { kPrefill, kDecode };

// Tokens of one sequence that stand together in a step.
struct SequenceMark {
  std::uint32_t sequence = 0;  // numbered from 0 in order of appearance
  std::uint32_t tokens = 0;
  std::uint32_t position = 0;  // of the first of them in its sequence
  bool operator==(const SequenceMark&) const = default;
};

// One sparse layer of one step: a set of experts that are needed together.
struct TraceEvent {
  std::uint64_t step = 0;  // index in the trace
  std::uint32_t layer = 0;
  TracePhase phase = TracePhase::kPrefill;
  std::uint32_t tokens = 0;                  // T
  std::span<const experts::Choice> choices;  // of each token ascending by expert
  std::span<const std::uint32_t> begin;      // (T + 1): token t owns choices [begin[t], begin[t + 1])
  std::span<const float> logits;             // (T, N); empty if the trace has none
  std::span<const SequenceMark> sequences;   // cover the tokens; empty: not known
  std::span<const std::int32_t> token_ids;   // (T); empty: not known
};

// Reads events from start to end. Everything is checked before it is handed out. Thread-compatible.
class RoutingTrace {
 public:
  virtual ~RoutingTrace() = default;
  const TraceHeader& header() const { return header_; }
  const std::string& path() const { return path_; }
  // False at the end. What `event` points to lasts until the next call. Error(kCorrupt), (kInvalid), (kIo)
  // with the place (byte, of the unpacked file), what was expected and found.
  virtual bool next(TraceEvent& event) = 0;
  // At the end: the last record was cut off, and left out, or the last step is not whole.
  virtual bool cut_off() const { return false; }

 protected:
  explicit RoutingTrace(std::string path) : path_(std::move(path)) {}
  TraceHeader header_;

 private:
  std::string path_;
};

// Opens a trace of any kind; the kind is told by its first bytes. Error(kNotFound), (kInvalid) for a file
// that is none, (kUnsupported) for another version, and as next().
std::unique_ptr<RoutingTrace> open_trace(const std::string& path);
std::unique_ptr<RoutingTrace> open_trace(std::unique_ptr<ByteSource> source);

}  // namespace sluice::trace
