// Writes docs/trace-format.md during a run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/background_writer.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "experts/routing/router.h"
#include "trace/routing_trace.h"
#include "trace/trace_format.h"

namespace sluice::trace {

// Thread-compatible. A separate thread writes the file; if it fails, a later call throws its Error(kIo).
// Without close() the file is as after an interrupted program: readable, and a later run may continue it.
class TraceWriter {
 public:
  // Throws what create(), or resume() if the file exists, would refuse for any model: for callers that open
  // the file late.
  static void check(const std::string& path);
  // A new file: Error(kInvalid) if it exists, (kUsage) if its name ends in .zst. `header` must have identity
  // and sizes.
  static TraceWriter create(const std::string& path, const TraceHeader& header);
  // Continues a file: cuts its unfinished end away. Error(kInvalid) if it belongs to another model; errors as
  // open_trace if it cannot be read.
  static TraceWriter resume(const std::string& path, const TraceHeader& header);

  // Returns when the file has what it holds so far, so that a disk without room is told before the steps.
  void begin_run(const Json& run);
  // Sequences are numbered from 0 within this run, in order of appearance.
  void begin_step(TracePhase phase, std::span<const SequenceMark> sequences,
                  std::span<const std::int32_t> token_ids);
  // Takes back a step whose layers were not all given: cuts its part of the file away, and its sequences
  // count as not seen. The file continues behind the step before. Does nothing without an unfinished step.
  void abandon_step();
  bool in_step() const { return next_layer_ < layers_; }
  // Adds the next layer of the step, behind what belongs to it: the logits (T, N) that predictors gave for
  // it, each at most once and in the order of the header; then, if the header says so, its gate inputs (T,
  // d). Shapes and orders that differ from header and step are a bug of the caller.
  void ahead(std::string_view predictor, std::span<const float> logits);
  void gate_inputs(std::span<const float> inputs);
  void layer(std::span<const float> logits, const experts::Routing& routing);
  void close();  // abandons an unfinished step
  // Instead of close(), for a run that failed: a new file is removed, and a continued one is cut to what
  // resume() found, so that no file looks like a trace of a run that is not in it to its end.
  void give_up() noexcept;
  std::uint64_t steps() const { return steps_; }  // complete steps in the file, earlier runs included
  // Whether the header says that these are recorded.
  bool has_ahead() const { return !predictors_.empty(); }
  bool has_gate_inputs() const { return gate_floats_ != 0; }

  // Memory that a writer takes, including the file's pages in the page cache.
  static constexpr Bytes kMemory = 2 * kMiB;

 private:
  enum class Begun { kNew, kContinued };
  TraceWriter(FileLock lock, OutputFile file, const TraceHeader& header, Begun begun);
  void step_is_whole();
  void begin_record(RecordKind kind, Bytes bytes);
  // For a record of the running layer: also its first fields, step, layer and tokens, which `bytes` counts.
  void begin_layer_record(RecordKind kind, Bytes bytes);
  void begin_layer(std::uint32_t layer);
  template <class Number>
  void put(std::span<const Number> numbers);
  template <class Number>
  void put_one(Number number);
  void end_record();
  void append(std::span<const std::byte> bytes);
  void hand_over();  // hands gathered records to the writing thread
  void write(std::span<const std::byte> bytes);

  std::string path_;
  Begun begun_;
  FileLock lock_;  // one writer per file
  std::unique_ptr<BackgroundWriter> out_;
  std::uint32_t layers_, experts_, gate_floats_;  // L, N, d
  std::vector<std::string> predictors_;
  std::uint64_t steps_ = 0;
  std::uint32_t next_layer_ = 0, tokens_ = 0;
  // The running layer:
  std::size_t next_predictor_ = 0;                    // the first that may still come
  bool has_inputs_ = false;                           // they have come
  Bytes layer_bytes_ = 0;                             // its payloads so far
  std::uint32_t first_sequence_ = 0, sequences_ = 0;  // this run's; number seen in the file
  Bytes written_ = 0;                                 // written to the file, or on the way
  Bytes first_bytes_ = 0;                             // bytes of the file that is continued
  // Where an abandoned step goes back to.
  Bytes whole_bytes_ = 0;
  std::uint32_t whole_sequences_ = 0;
  std::vector<std::byte> buffer_;     // the small records of a step, handed over together
  bool gathered_ = false;             // the running record is one of these …
  std::size_t payload_begin_ = 0;     // … and its payload begins here
  std::unique_ptr<Xxh3Stream> hash_;  // over the payload of a record that is not gathered
  Bytes left_ = 0;                    // rest of the running record's payload
  std::vector<std::uint16_t> ids_;
  std::vector<float> weights_;
};

}  // namespace sluice::trace
