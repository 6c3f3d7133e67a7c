// Recorded routing from any recorder behind one interface: our own traces (docs/trace-format.md), the `.mrt`
// files of DeepSeek-V2-Lite, and the `.csv` files of BigMoeOnEdge (docs/replay.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experts/core/ids.h"
#include "experts/core/sequence_span.h"
#include "experts/routing/router.h"
#include "trace/byte_source.h"

namespace sluice::trace {

// Sizes of all experts of a model of `layers` × `experts`.
class TraceSizes final : public experts::ExpertSizes {
 public:
  // A file of few bytes may claim many experts of one size: this limits the cost of a claim, at 40 bytes per
  // expert.
  static constexpr std::uint64_t kMostExpertsInAll = 1 << 20;
  // Error(kInvalid) naming `path` if there are more experts than that.
  TraceSizes(std::uint32_t layers, std::uint32_t experts, std::string_view path = "trace");
  experts::ExpertBytes bytes(experts::ExpertId id) const override { return memory_[place(id)]; }
  // Bytes that reading the whole expert asks of the disk; bytes that reading only its exponents asks.
  Bytes disk_bytes(experts::ExpertId id) const { return disk_[place(id)]; }
  Bytes exp_disk_bytes(experts::ExpertId id) const { return exp_disk_[place(id)]; }
  // Bytes that reading asks of the disk if `resident` is already in memory.
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

// What a trace says about the model it was recorded from.
struct TraceHeader {
  std::string format;         // "trace" "mrt" "csv"
  std::string architecture;   // empty: unknown
  std::uint32_t layers = 0;   // L, sparse layers
  std::uint32_t experts = 0;  // N
  std::uint32_t top_k = 0;
  std::optional<std::uint64_t> identity;  // the model's (docs/trace-format.md, section 2)
  std::optional<TraceSizes> sizes;        // empty: unknown
  bool logits = false;                    // events have all router logits
  std::vector<std::string> ahead = {};    // predictors whose logits events may have
  std::uint32_t gate_inputs = 0;          // floats d of a token's gate input; 0: events have none
};

enum class TracePhase : std::uint8_t { kPrefill, kDecode };

// Consecutive tokens of one sequence in a step.
struct SequenceMark {
  std::uint32_t sequence = 0;  // numbered from 0 in order of appearance
  std::uint32_t tokens = 0;
  std::uint32_t position = 0;  // position in the sequence of the first of these tokens
  bool operator==(const SequenceMark&) const = default;
};

// What a predictor said about a layer while the layer before it was computed.
struct PredictedLogits {
  std::string_view predictor;     // from TraceHeader::ahead
  std::span<const float> logits;  // (T, N)
};

// One sparse layer of one step: a set of experts that are needed together.
struct TraceEvent {
  std::uint64_t step = 0;  // index in the trace
  std::uint32_t layer = 0;
  TracePhase phase = TracePhase::kPrefill;
  std::uint32_t tokens = 0;                  // T
  std::span<const experts::Choice> choices;  // ascending by expert within each token
  std::span<const std::uint32_t> begin;      // (T + 1): token t owns choices [begin[t], begin[t + 1])
  std::span<const float> logits;             // (T, N); empty if the trace has none
  std::span<const SequenceMark> sequences;   // cover all tokens; empty: unknown
  std::span<const std::int32_t> token_ids;   // (T); empty: unknown
  // In the header's order, at most one of each predictor; none for layer 0.
  std::span<const PredictedLogits> ahead = {};
  std::span<const float> gate_inputs = {};  // (T, d): what the router scored; empty if the trace has none
};

// Whether tokens begin a forward (experts::SequenceSpan), as far as a record tells: it has positions, not
// chunks. A prompt begins where its sequence does; one behind adopted tokens seems to go on.
inline bool begins_forward(bool of_prompt, std::uint64_t position) { return !of_prompt || position == 0; }

// Whose tokens the event's are, as policies see it; replaces `out`. All are one sequence's where they are
// unknown.
void describe_spans(const TraceEvent& event, std::vector<experts::SequenceSpan>& out);

// Reads events from start to end and checks everything before handing it out. Thread-compatible.
class RoutingTrace {
 public:
  virtual ~RoutingTrace() = default;
  const TraceHeader& header() const { return header_; }
  const std::string& path() const { return path_; }
  // False at the end. The data behind `event` is valid until the next call. Error(kCorrupt), (kInvalid),
  // (kIo) with the place (byte of the unpacked file), expected and found.
  virtual bool next(TraceEvent& event) = 0;
  // At the end: whether the last record was cut off and left out, or the last step is incomplete.
  virtual bool cut_off() const { return false; }
  // What the runs read so far played in place of their models' own choices, in the recorder's words
  // ("recorded from FILE", several with ", and " between them); empty: nothing. Every output about the trace
  // names it.
  const std::string& played() const { return played_; }
  // Beside which devices these runs computed, as recorded_device() writes them (several with ", and " between
  // them); empty: none, or unknown. What was predicted by what is in memory holds beside these alone.
  const std::string& devices() const { return devices_; }

 protected:
  explicit RoutingTrace(std::string path) : path_(std::move(path)) {}
  TraceHeader header_;
  std::string played_, devices_;

 private:
  std::string path_;
};

// "cache lru, placement device, 8 slots of each layer".
std::string recorded_device(std::string_view cache, std::string_view placement, std::uint64_t slots);

// Opens a trace of any kind; its first bytes tell the kind. Error(kNotFound), (kInvalid) for a file that is
// not a trace, (kUnsupported) for another version; otherwise errors as next().
std::unique_ptr<RoutingTrace> open_trace(const std::string& path);
std::unique_ptr<RoutingTrace> open_trace(std::unique_ptr<ByteSource> source);

}  // namespace sluice::trace
