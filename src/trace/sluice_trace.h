// Reads our own traces, docs/trace-format.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trace/routing_trace.h"
#include "trace/trace_format.h"
#include "trace/trace_input.h"

namespace sluice::trace {

// The events of the layers of all runs, one after the other. Thread-compatible.
class SluiceTrace final : public RoutingTrace {
 public:
  explicit SluiceTrace(std::unique_ptr<TraceInput> input);
  bool next(TraceEvent& event) override;
  bool cut_off() const override { return cut_off_; }

  // Where a writer continues: behind header and whole steps. Valid only after the last event.
  Bytes whole_bytes() const { return whole_bytes_; }
  std::uint64_t whole_steps() const { return whole_steps_; }
  std::uint32_t whole_sequences() const { return whole_sequences_; }

 private:
  bool read_record(RecordKind& kind);  // false at the end
  bool fits(RecordKind kind) const;    // in the order of records
  void read_run();
  void read_step();
  void read_ahead();
  void read_inputs();
  void read_layer();
  // Checks step, layer and tokens, with which all records of a layer begin, and counts the bytes.
  void check_layer_fields();
  // `at`: where the numbers stand in the payload; `what`: one of them, in the error.
  void check_finite(std::size_t at, std::span<const float> numbers, const char* what) const;
  [[noreturn]] void fail(std::size_t payload_offset, std::string_view message, const std::string& expected,
                         const std::string& found) const;
  template <class Number>
  std::size_t copy(std::size_t at, std::size_t count, std::vector<Number>& out) const;
  void need(std::size_t bytes) const;

  std::unique_ptr<TraceInput> input_;
  std::vector<std::byte> head_, payload_, tail_;
  Bytes payload_begin_ = 0;  // where the current record's begins
  bool cut_off_ = false, any_run_ = false;
  // What played() or devices() joins.
  struct Names {
    void add(const std::string& name, std::string& joined);
    std::vector<std::string> known;
  } played_names_, device_names_;
  std::uint64_t steps_ = 0;       // steps begun
  std::uint32_t next_layer_ = 0;  // in the running step; L: the step is complete
  std::uint32_t sequences_ = 0;
  Bytes whole_bytes_ = 0;
  std::uint64_t whole_steps_ = 0;
  std::uint32_t whole_sequences_ = 0;

  TracePhase phase_ = TracePhase::kPrefill;
  std::vector<SequenceMark> marks_;
  std::vector<std::int32_t> token_ids_;
  std::vector<std::uint32_t> begin_;
  std::vector<std::uint16_t> experts_;
  std::vector<float> weights_, logits_;
  std::vector<experts::Choice> choices_;
  // The layer whose records are being read:
  std::vector<PredictedLogits> ahead_;            // views of …
  std::vector<std::vector<float>> ahead_logits_;  // … these, in the same order
  std::size_t next_predictor_ = 0;                // the first name of the header that may still come
  std::vector<float> gate_inputs_;
  Bytes layer_bytes_ = 0;  // its payloads so far
};

}  // namespace sluice::trace
