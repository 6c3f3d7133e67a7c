#include "trace/sluice_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "base/shown_text.h"
#include "trace/trace_header.h"

namespace sluice::trace {
namespace {

// Runs that are named for what they played; a file may have any number of them.
constexpr std::size_t kMostNamed = 8;

// Fields that are missing, or of another kind, are shown as such: another recorder may have written them.
std::string text_of_device(const Json& device) {
  const auto name = [&](const char* key) {
    const auto at = device.find(key);
    return at != device.end() && at->is_string() ? shown_text(at->get<std::string>())
                                                 : std::string("unknown");
  };
  const auto slots = device.find("slots");
  return recorded_device(
      name("cache"), name("placement"),
      slots != device.end() && slots->is_number_unsigned() ? slots->get<std::uint64_t>() : 0);
}

}  // namespace

SluiceTrace::SluiceTrace(std::unique_ptr<TraceInput> input)
    : RoutingTrace(input->path()), input_(std::move(input)) {
  header_ = read_trace_header(*input_);
  next_layer_ = header_.layers;
  whole_bytes_ = input_->offset();
}

bool SluiceTrace::next(TraceEvent& event) {
  if (cut_off_) return false;
  const std::uint32_t layers = header_.layers;
  next_predictor_ = 0;
  ahead_.clear();
  gate_inputs_.clear();
  layer_bytes_ = 0;
  while (true) {
    const Bytes begin = input_->offset();
    RecordKind kind{};
    if (!read_record(kind)) {
      cut_off_ |= next_layer_ != layers;  // the file was cut between two records of a step
      return false;
    }
    const bool whole = next_layer_ == layers;
    if (!fits(kind))
      throw Error(ErrorKind::kCorrupt, "a record of the trace is out of order")
          .in(path(), begin)
          .expected(!any_run_ ? "a run record"
                    : whole   ? "a run or a step record"
                              : fmt::format("the record of layer {}", next_layer_))
          .found(fmt::format("a record of kind {}", static_cast<std::uint32_t>(kind)))
          .fix(kCopyAgain);
    if (kind == RecordKind::kRun) {
      read_run();
    } else if (kind == RecordKind::kStep) {
      read_step();
    } else if (kind == RecordKind::kAhead) {
      read_ahead();
    } else if (kind == RecordKind::kInputs) {
      read_inputs();
    } else {
      read_layer();
      event = {.step = steps_ - 1,
               .layer = next_layer_ - 1,
               .phase = phase_,
               .tokens = static_cast<std::uint32_t>(token_ids_.size()),
               .choices = choices_,
               .begin = begin_,
               .logits = logits_,
               .sequences = marks_,
               .token_ids = token_ids_,
               .ahead = ahead_,
               .gate_inputs = gate_inputs_};
      if (next_layer_ == layers) {
        whole_bytes_ = input_->offset();
        whole_steps_ = steps_;
        whole_sequences_ = sequences_;
      }
      return true;
    }
  }
}

// A run that was cut off within a step may be followed by another run only after that step was cut away.
bool SluiceTrace::fits(RecordKind kind) const {
  const bool whole = next_layer_ == header_.layers;
  if (kind == RecordKind::kRun) return whole;
  if (kind == RecordKind::kStep) return whole && any_run_;
  return !whole;
}

bool SluiceTrace::read_record(RecordKind& kind) {
  const Bytes begin = input_->offset();
  if (input_->peek(1).empty()) return false;
  if (!input_->read(kRecordHeadBytes, head_)) {
    cut_off_ = true;
    return false;
  }
  const auto number = number_at<std::uint32_t>(head_, 0), length = number_at<std::uint32_t>(head_, 4),
             check = number_at<std::uint32_t>(head_, 8);
  const auto sum = static_cast<std::uint32_t>(xxh3(std::span(head_).first(8)));
  if (check != sum)
    throw Error(ErrorKind::kCorrupt, "checksum of a record's head is wrong")
        .in(path(), begin)
        .expected(fmt::format("{:08x}", check))
        .found(fmt::format("{:08x}", sum))
        .fix(kCopyAgain);
  const bool has_more = trace_version(header_) != kTraceVersion1;
  const auto last = static_cast<std::uint32_t>(has_more ? RecordKind::kInputs : RecordKind::kLayer);
  if (number < 1 || number > last)
    throw Error(ErrorKind::kUnsupported, "unknown kind of record")
        .in(path(), begin)
        .expected(fmt::format("1 to {}", last))
        .found(std::to_string(number))
        .fix("use the program that recorded it");
  payload_begin_ = input_->offset();
  if (!input_->read(length, payload_) || !input_->read(kRecordTailBytes, tail_)) {
    cut_off_ = true;
    return false;
  }
  const std::uint64_t hash = xxh3(payload_), stored = number_at<std::uint64_t>(tail_, 0);
  if (hash != stored)
    throw Error(ErrorKind::kCorrupt, "checksum of a record is wrong")
        .in(path(), begin)
        .expected(hex64(stored))
        .found(hex64(hash))
        .fix(kCopyAgain);
  kind = static_cast<RecordKind>(number);
  return true;
}

void SluiceTrace::fail(std::size_t payload_offset, std::string_view message, const std::string& expected,
                       const std::string& found) const {
  throw Error(ErrorKind::kCorrupt, message)
      .in(path(), payload_begin_ + payload_offset)
      .expected(expected)
      .found(found)
      .fix(kCopyAgain);
}

void SluiceTrace::need(std::size_t bytes) const {
  if (payload_.size() != bytes)
    fail(0, "a record's length does not follow from its counts", fmt::format("{} bytes", bytes),
         fmt::format("{} bytes", payload_.size()));
}

template <class Number>
std::size_t SluiceTrace::copy(std::size_t at, std::size_t count, std::vector<Number>& out) const {
  out.resize(count);
  if (count > 0) std::memcpy(out.data(), payload_.data() + at, count * sizeof(Number));
  return at + count * sizeof(Number);
}

void SluiceTrace::read_run() {
  any_run_ = true;
  const Json run =
      parse_json({reinterpret_cast<const char*>(payload_.data()), payload_.size()}, path() + ": run");
  if (!run.is_object()) return;
  if (const auto routing = run.find("routing"); routing != run.end() && routing->is_string())
    played_names_.add(shown_text(routing->get<std::string>()), played_);
  if (const auto device = run.find("device"); device != run.end() && device->is_object())
    device_names_.add(text_of_device(*device), devices_);
}

void SluiceTrace::Names::add(const std::string& name, std::string& joined) {
  if (known.size() > kMostNamed || std::ranges::find(known, name) != known.end()) return;
  known.push_back(name);
  joined += (joined.empty() ? "" : ", and ") + (known.size() > kMostNamed ? "others" : name);
}

void SluiceTrace::read_step() {
  if (payload_.size() < 20) need(20);
  const auto step = number_at<std::uint64_t>(payload_, 0);
  const auto phase = number_at<std::uint32_t>(payload_, 8), tokens = number_at<std::uint32_t>(payload_, 12),
             sequences = number_at<std::uint32_t>(payload_, 16);
  if (step != steps_) fail(0, "a step is missing", std::to_string(steps_), std::to_string(step));
  if (phase > 1) fail(8, "unknown phase", "0 or 1", std::to_string(phase));
  if (tokens == 0 || sequences == 0 || sequences > tokens)
    fail(12, "a step's counts are out of range", "1 or more tokens, of 1 to as many sequences",
         fmt::format("{} tokens of {} sequences", tokens, sequences));
  need(20 + std::size_t{sequences} * 12 + std::size_t{tokens} * 4);
  std::vector<std::uint32_t> numbers;
  const std::size_t ids = copy(20, std::size_t{sequences} * 3, numbers);
  marks_.clear();
  std::uint64_t covered = 0;
  for (std::size_t s = 0; s < sequences; ++s) {
    const SequenceMark mark{numbers[3 * s], numbers[3 * s + 1], numbers[3 * s + 2]};
    if (mark.sequence > sequences_ || mark.sequence == 0xffffffffu)
      fail(20 + s * 12, "sequences are not numbered as they appear", fmt::format("at most {}", sequences_),
           std::to_string(mark.sequence));
    if (mark.sequence == sequences_) ++sequences_;
    covered += mark.tokens;
    marks_.push_back(mark);
  }
  if (covered != tokens)
    fail(20, "the sequences do not cover the step's tokens", std::to_string(tokens), std::to_string(covered));
  copy(ids, tokens, token_ids_);
  phase_ = phase == 0 ? TracePhase::kPrefill : TracePhase::kDecode;
  ++steps_;
  next_layer_ = 0;
}

void SluiceTrace::check_layer_fields() {
  layer_bytes_ += payload_.size();
  input_->check_step(layer_bytes_);
  if (payload_.size() < kLayerFields) need(kLayerFields);
  const auto step = number_at<std::uint64_t>(payload_, 0);
  const auto layer = number_at<std::uint32_t>(payload_, 8), tokens = number_at<std::uint32_t>(payload_, 12);
  if (step != steps_ - 1)
    fail(0, "a layer of another step", std::to_string(steps_ - 1), std::to_string(step));
  if (layer != next_layer_) fail(8, "a layer is missing", std::to_string(next_layer_), std::to_string(layer));
  if (tokens != token_ids_.size())
    fail(12, "tokens of the layer are not those of its step", std::to_string(token_ids_.size()),
         std::to_string(tokens));
}

void SluiceTrace::check_finite(std::size_t at, std::span<const float> numbers, const char* what) const {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!std::isfinite(numbers[i]))
      fail(at + 4 * i, fmt::format("{} is not a number", what), "a finite one", std::to_string(numbers[i]));
}

void SluiceTrace::read_ahead() {
  check_layer_fields();
  if (payload_.size() < kLayerFields + 4) need(kLayerFields + 4);
  const auto length = number_at<std::uint32_t>(payload_, kLayerFields);
  const std::size_t name_at = kLayerFields + 4;
  const std::size_t floats = token_ids_.size() * header_.experts;
  if (length > kMostPredictorName)
    fail(kLayerFields, "the name of a predictor is too long",
         fmt::format("at most {} bytes", kMostPredictorName), std::to_string(length));
  need(name_at + length + floats * 4);
  const std::string_view name(reinterpret_cast<const char*>(payload_.data()) + name_at, length);
  const auto first = header_.ahead.begin() + static_cast<std::ptrdiff_t>(next_predictor_);
  const auto known = std::find(first, header_.ahead.end(), name);
  if (next_layer_ == 0 || !gate_inputs_.empty() || known == header_.ahead.end())
    fail(
        name_at, "a prediction is out of order",
        "predictions of layers behind the first, in the order of the header's predictors, before the layer's "
        "gate inputs",
        fmt::format("one of \"{}\" for layer {}", shown_text(name), next_layer_));
  const std::size_t at = ahead_.size();
  next_predictor_ = static_cast<std::size_t>(known - header_.ahead.begin()) + 1;
  if (ahead_logits_.size() <= at) ahead_logits_.resize(header_.ahead.size());
  copy(name_at + length, floats, ahead_logits_[at]);
  check_finite(name_at + length, ahead_logits_[at], "a predicted logit");
  ahead_.push_back({*known, ahead_logits_[at]});
}

void SluiceTrace::read_inputs() {
  check_layer_fields();
  const std::size_t floats = token_ids_.size() * header_.gate_inputs;
  if (header_.gate_inputs == 0 || !gate_inputs_.empty())
    fail(0, "gate inputs are out of order",
         header_.gate_inputs == 0 ? "none, as the header says" : "one record of them for each layer",
         fmt::format("more for layer {}", next_layer_));
  need(kLayerFields + floats * 4);
  copy(kLayerFields, floats, gate_inputs_);
  check_finite(kLayerFields, gate_inputs_, "a gate input");
}

void SluiceTrace::read_layer() {
  check_layer_fields();
  if (payload_.size() < 20) need(20);
  const auto tokens = static_cast<std::uint32_t>(token_ids_.size()),
             choices = number_at<std::uint32_t>(payload_, 16);
  if (header_.gate_inputs != 0 && gate_inputs_.empty())
    fail(0, "gate inputs of a layer are missing", "their record before the layer's", "the layer's");
  if (choices > std::uint64_t{tokens} * header_.top_k)
    fail(16, "more choices than the model makes",
         fmt::format("at most {}", std::uint64_t{tokens} * header_.top_k), std::to_string(choices));
  const std::size_t experts = header_.experts;
  need(20 + (std::size_t{tokens} + 1) * 4 + std::size_t{choices} * 6 + std::size_t{tokens} * experts * 4);
  const std::size_t ids = copy(20, std::size_t{tokens} + 1, begin_), weights = copy(ids, choices, experts_),
                    logits = copy(weights, choices, weights_);
  copy(logits, std::size_t{tokens} * experts, logits_);
  if (begin_.front() != 0 || begin_.back() != choices)
    fail(20, "the tokens do not cover the choices", fmt::format("0 to {}", choices),
         fmt::format("{} to {}", begin_.front(), begin_.back()));
  choices_.resize(choices);
  for (std::size_t t = 0; t < tokens; ++t) {
    if (begin_[t] > begin_[t + 1] || begin_[t + 1] > choices || begin_[t + 1] - begin_[t] > header_.top_k)
      fail(20 + 4 * t, "the choices of a token are out of range",
           fmt::format("0 to {} of them", header_.top_k),
           fmt::format("from {} to {}", begin_[t], begin_[t + 1]));
    for (std::size_t c = begin_[t]; c < begin_[t + 1]; ++c) {
      if (experts_[c] >= experts)
        fail(ids + 2 * c, "there is no such expert", fmt::format("0 to {}", experts - 1),
             std::to_string(experts_[c]));
      if (c > begin_[t] && experts_[c] <= experts_[c - 1])
        fail(ids + 2 * c, "a token's experts are not ascending", fmt::format("more than {}", experts_[c - 1]),
             std::to_string(experts_[c]));
      if (!std::isfinite(weights_[c]))
        fail(weights + 4 * c, "a weight is not a number", "a finite one", std::to_string(weights_[c]));
      choices_[c] = {.expert = experts_[c], .weight = weights_[c]};
    }
  }
  check_finite(logits, logits_, "a logit");
  ++next_layer_;
}

}  // namespace sluice::trace
