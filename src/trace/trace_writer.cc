#include "trace/trace_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/files/unfinished_file.h"
#include "trace/sluice_trace.h"
#include "trace/trace_format.h"
#include "trace/trace_header.h"
#include "trace/trace_input.h"

namespace sluice::trace {
namespace {

constexpr Bytes kMostGathered = 64 * kKiB;  // for records of decode steps; prefill records are not copied

template <class Number>
std::span<const std::byte> bytes_of(const Number& number) {
  return std::as_bytes(std::span(&number, 1));
}

void refuse_compressed(const std::string& path) {
  if (path.ends_with(".zst"))
    throw Error(ErrorKind::kUsage, "traces are recorded uncompressed")
        .in(path)
        .expected("a name that does not end in .zst")
        .found("one that does")
        .fix("leave .zst out, and compress the finished trace with zstd");
}

void check_size(Bytes bytes) {
  if (bytes > kMostStepBytes)
    throw Error(ErrorKind::kUnsupported, "a step is too large for a record of the trace")
        .expected(fmt::format("at most {} bytes", kMostStepBytes))
        .found(std::to_string(bytes))
        .fix("record shorter prompts, or fewer at once");
}

std::string extras_text(const TraceHeader& header) {
  if (trace_version(header) == kTraceVersion1) return "the routing alone";
  std::string text;
  for (const std::string& predictor : header.ahead)
    text += fmt::format("{}predictions {}", text.empty() ? "" : ", ", predictor);
  if (header.gate_inputs > 0)
    text += fmt::format("{}gate inputs of {} floats", text.empty() ? "" : ", ", header.gate_inputs);
  return text;
}

}  // namespace

TraceWriter::TraceWriter(FileLock lock, OutputFile file, const TraceHeader& header, Begun begun)
    : path_(file.path()),
      begun_(begun),
      lock_(std::move(lock)),
      out_(std::make_unique<BackgroundWriter>(std::move(file), kMemory / 2)),
      layers_(header.layers),
      experts_(header.experts),
      gate_floats_(header.gate_inputs),
      predictors_(header.ahead),
      next_layer_(header.layers),
      hash_(std::make_unique<Xxh3Stream>()) {}

void TraceWriter::check(const std::string& path) {
  refuse_compressed(path);
  if (::access(path.c_str(), F_OK) != 0) return;
  InputFile::open(path);
  FileLock::acquire(path);  // opens the file for writing
  SluiceTrace(std::make_unique<TraceInput>(open_bytes(path)));
}

TraceWriter TraceWriter::create(const std::string& path, const TraceHeader& header) {
  refuse_compressed(path);
  OutputFile file = OutputFile::create(path);
  UnfinishedFile unfinished(path);
  TraceWriter writer(FileLock::acquire(path), std::move(file), header, Begun::kNew);
  const std::string bytes = trace_header_bytes(header);
  writer.write(std::as_bytes(std::span(bytes)));
  writer.step_is_whole();
  unfinished.keep();
  return writer;
}

TraceWriter TraceWriter::resume(const std::string& path, const TraceHeader& header) {
  refuse_compressed(path);
  InputFile::open(path);  // opened first, because a lock would create a missing file
  FileLock lock = FileLock::acquire(path);
  SluiceTrace trace(std::make_unique<TraceInput>(open_bytes(path)));
  const TraceHeader& old = trace.header();
  if (old.identity != header.identity || old.layers != header.layers || old.experts != header.experts ||
      old.top_k != header.top_k)
    throw Error(ErrorKind::kInvalid, "the trace was recorded from another model")
        .in(path)
        .expected(fmt::format("model {} ({})", hex64(*header.identity), header.architecture))
        .found(fmt::format("model {} ({})", hex64(*old.identity), old.architecture))
        .fix("record into another file");
  if (!(*old.sizes == *header.sizes))
    throw Error(ErrorKind::kInvalid, "the trace was recorded from the same model, stored with other sizes")
        .in(path)
        .expected("experts of the same bytes in memory and on disk")
        .found("other bytes, as of a packed store and its source")
        .fix("record into another file, or from the store that it was recorded from");
  if (old.ahead != header.ahead || old.gate_inputs != header.gate_inputs)
    throw Error(ErrorKind::kInvalid, "the trace records other things beside the routing")
        .in(path)
        .expected(extras_text(header))
        .found(extras_text(old))
        .fix("record into another file, or record the same things");
  TraceEvent event;
  while (trace.next(event)) {
  }
  TraceWriter writer(std::move(lock), OutputFile::open_for_append(path, trace.whole_bytes()), header,
                     Begun::kContinued);
  writer.steps_ = trace.whole_steps();
  writer.first_sequence_ = writer.sequences_ = trace.whole_sequences();
  writer.written_ = writer.first_bytes_ = trace.whole_bytes();
  writer.step_is_whole();
  return writer;
}

void TraceWriter::begin_record(RecordKind kind, Bytes bytes) {
  SLUICE_CHECK(left_ == 0);
  check_size(bytes);
  const std::uint32_t words[2] = {static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(bytes)};
  const auto head = std::as_bytes(std::span(words));
  gathered_ = bytes <= kMostGathered;
  append(head);
  append(bytes_of(static_cast<std::uint32_t>(xxh3(head))));
  payload_begin_ = buffer_.size();
  if (!gathered_) {
    hand_over();
    hash_ = std::make_unique<Xxh3Stream>();
  }
  left_ = bytes;
}

void TraceWriter::append(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void TraceWriter::hand_over() {
  write(buffer_);
  buffer_.clear();
}

void TraceWriter::write(std::span<const std::byte> bytes) {
  written_ += bytes.size();
  out_->write(bytes);
}

void TraceWriter::step_is_whole() {
  whole_bytes_ = written_;
  whole_sequences_ = sequences_;
}

void TraceWriter::abandon_step() {
  if (!in_step() && left_ == 0) return;
  next_layer_ = layers_;
  left_ = 0;
  buffer_.clear();
  sequences_ = whole_sequences_;
  if (written_ == whole_bytes_) return;
  written_ = whole_bytes_;
  out_->cut(whole_bytes_);
}

template <class Number>
void TraceWriter::put(std::span<const Number> numbers) {
  const auto bytes = std::as_bytes(numbers);
  SLUICE_CHECK(bytes.size() <= left_);
  left_ -= bytes.size();
  if (gathered_) return append(bytes);
  hash_->update(bytes);
  write(bytes);
}

template <class Number>
void TraceWriter::put_one(Number number) {
  put(std::span<const Number>(&number, 1));
}

void TraceWriter::end_record() {
  SLUICE_CHECK(left_ == 0);
  append(bytes_of(gathered_ ? xxh3(std::span<const std::byte>(buffer_).subspan(payload_begin_))
                            : hash_->digest()));
  if (buffer_.size() > 2 * kMostGathered) hand_over();
}

void TraceWriter::begin_run(const Json& run) {
  SLUICE_CHECK(next_layer_ == layers_);
  const std::string text = run.dump();
  begin_record(RecordKind::kRun, text.size());
  put(std::span<const char>(text));
  end_record();
  hand_over();
  out_->cut(written_);  // waits until the file has it: a full disk is told before the first step
  first_sequence_ = sequences_;
  step_is_whole();
}

void TraceWriter::begin_step(TracePhase phase, std::span<const SequenceMark> sequences,
                             std::span<const std::int32_t> token_ids) {
  SLUICE_CHECK(!in_step() && !token_ids.empty());
  begin_layer(0);
  tokens_ = static_cast<std::uint32_t>(token_ids.size());
  begin_record(RecordKind::kStep, 20 + 12 * sequences.size() + 4 * token_ids.size());
  put_one(steps_);
  put_one(static_cast<std::uint32_t>(phase == TracePhase::kDecode));
  put_one(tokens_);
  put_one(static_cast<std::uint32_t>(sequences.size()));
  for (const SequenceMark& mark : sequences) {
    const std::uint32_t number = first_sequence_ + mark.sequence;
    SLUICE_CHECK(number <= sequences_, "sequences are numbered as they appear");
    sequences_ = std::max(sequences_, number + 1);
    put_one(number);
    put_one(mark.tokens);
    put_one(mark.position);
  }
  put(token_ids);
  end_record();
}

void TraceWriter::begin_layer(std::uint32_t layer) {
  next_layer_ = layer;
  next_predictor_ = 0;
  has_inputs_ = false;
  layer_bytes_ = 0;
}

void TraceWriter::begin_layer_record(RecordKind kind, Bytes bytes) {
  layer_bytes_ += bytes;
  check_size(layer_bytes_);
  begin_record(kind, bytes);
  put_one(steps_);
  put_one(next_layer_);
  put_one(tokens_);
}

void TraceWriter::ahead(std::string_view predictor, std::span<const float> logits) {
  SLUICE_CHECK(in_step() && next_layer_ > 0 && !has_inputs_ &&
               logits.size() == std::size_t{tokens_} * experts_);
  const auto first = predictors_.begin() + static_cast<std::ptrdiff_t>(next_predictor_);
  const auto known = std::find(first, predictors_.end(), predictor);
  SLUICE_CHECK(known != predictors_.end(), "a predictor that the header does not name, or out of its order");
  next_predictor_ = static_cast<std::size_t>(known - predictors_.begin()) + 1;
  begin_layer_record(RecordKind::kAhead, kLayerFields + 4 + predictor.size() + logits.size_bytes());
  put_one(static_cast<std::uint32_t>(predictor.size()));
  put(std::span<const char>(predictor));
  put(logits);
  end_record();
}

void TraceWriter::gate_inputs(std::span<const float> inputs) {
  SLUICE_CHECK(in_step() && gate_floats_ != 0 && !has_inputs_ &&
               inputs.size() == std::size_t{tokens_} * gate_floats_);
  has_inputs_ = true;
  begin_layer_record(RecordKind::kInputs, kLayerFields + inputs.size_bytes());
  put(inputs);
  end_record();
}

void TraceWriter::layer(std::span<const float> logits, const experts::Routing& routing) {
  SLUICE_CHECK(in_step() && has_inputs_ == (gate_floats_ != 0) &&
               logits.size() == std::size_t{tokens_} * experts_ &&
               routing.begin.size() == tokens_ + std::size_t{1});
  const std::size_t choices = routing.choices.size();
  ids_.resize(choices);
  weights_.resize(choices);
  for (std::size_t c = 0; c < choices; ++c) {
    ids_[c] = routing.choices[c].expert;
    weights_[c] = routing.choices[c].weight;
  }
  begin_layer_record(RecordKind::kLayer,
                     kLayerFields + 4 + 4 * routing.begin.size() + 6 * choices + logits.size_bytes());
  put_one(static_cast<std::uint32_t>(choices));
  put(std::span<const std::uint32_t>(routing.begin));
  put(std::span<const std::uint16_t>(ids_));
  put(std::span<const float>(weights_));
  put(logits);
  end_record();
  begin_layer(next_layer_ + 1);
  if (in_step()) return;
  ++steps_;
  hand_over();
  step_is_whole();
}

void TraceWriter::close() {
  abandon_step();
  out_->close();
}

void TraceWriter::give_up() noexcept {
  try {
    close();
  } catch (...) {  // the error was reported earlier
  }
  if (begun_ == Begun::kNew) {
    ::unlink(path_.c_str());
  } else if (::truncate(path_.c_str(), static_cast<off_t>(first_bytes_)) != 0) {
    return;  // readable as it is: the next run cuts its end off
  }
}

}  // namespace sluice::trace
