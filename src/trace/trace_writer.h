// Writes docs/trace-format.md while a run goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/background_writer.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "experts/router.h"
#include "trace/routing_trace.h"

namespace sluice::trace {

// Thread-compatible. The file is written by a thread of its own; what it could not write is an Error(kIo) of
// a later call. Without close() the file is as if the program had been interrupted: readable, and may be
// continued.
class TraceWriter {
 public:
  // What create(), or resume() if the file is there, would refuse whatever the model: for those who open it
  // late.
  static void check(const std::string& path);
  // A new file: Error(kInvalid) if it exists, (kUsage) if it is called .zst. `header` must have identity and
  // sizes.
  static TraceWriter create(const std::string& path, const TraceHeader& header);
  // A file that is continued: cuts its unfinished end away. Error(kInvalid) if it is of another model; as
  // open_trace if it cannot be read.
  static TraceWriter resume(const std::string& path, const TraceHeader& header);

  void begin_run(const Json& run);
  // Sequences are numbered within this run from 0 in order of appearance.
  void begin_step(TracePhase phase, std::span<const SequenceMark> sequences,
                  std::span<const std::int32_t> token_ids);
  // Takes back a step whose layers have not all been given: what of it is in the file is cut away, and its
  // sequences count as not seen. The file goes on behind the step before. Nothing if no step is unfinished.
  void abandon_step();
  bool in_step() const { return next_layer_ < layers_; }
  // The next layer of the step. Our own bug if its shapes are not those of header and step.
  void layer(std::span<const float> logits, const experts::Routing& routing);
  void close();  // abandons an unfinished step
  // Instead of close(), for a run that failed: a file in which it has no whole step becomes what create() or
  // resume() found, so that a new one is removed. With a whole step the file stays, and may be continued.
  void give_up() noexcept;
  std::uint64_t steps() const { return steps_; }  // whole ones in the file, earlier runs included

  // Memory that a writer takes; the file's pages included.
  static constexpr Bytes kMemory = 2 * kMiB;

 private:
  enum class Begun { kNew, kContinued };
  TraceWriter(FileLock lock, OutputFile file, const TraceHeader& header, Begun begun);
  void step_is_whole();
  void begin_record(std::uint32_t kind, Bytes bytes);
  template <class Number>
  void put(std::span<const Number> numbers);
  template <class Number>
  void put_one(Number number);
  void end_record();
  void append(std::span<const std::byte> bytes);
  void hand_over();  // what has been gathered, to the thread that writes
  void write(std::span<const std::byte> bytes);

  std::string path_;
  Begun begun_;
  FileLock lock_;  // one writer a file
  std::unique_ptr<BackgroundWriter> out_;
  std::uint32_t layers_, experts_;
  std::uint64_t steps_ = 0;
  std::uint32_t next_layer_ = 0, tokens_ = 0;
  std::uint32_t first_sequence_ = 0, sequences_ = 0;  // of this run; seen in the file
  Bytes written_ = 0;                                 // to the file, or on the way
  Bytes first_bytes_ = 0;                             // of what is continued
  std::optional<Bytes> first_step_bytes_;             // of the file with the first whole step of this run
  // What a step that is given up goes back to.
  Bytes whole_bytes_ = 0;
  std::uint32_t whole_sequences_ = 0;
  std::vector<std::byte> buffer_;     // the small records of a step, handed over together
  bool gathered_ = false;             // the running record is one of them …
  std::size_t payload_begin_ = 0;     // … and its payload begins here
  std::unique_ptr<Xxh3Stream> hash_;  // of the payload of one that is not
  Bytes left_ = 0;                    // of the running record's payload, to come
  std::vector<std::uint16_t> ids_;
  std::vector<float> weights_;
};

// The bytes before the first record.
std::string trace_header_bytes(const TraceHeader& header);

}  // namespace sluice::trace
