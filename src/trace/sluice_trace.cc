#include "trace/sluice_trace.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/json/json.h"

namespace sluice::trace {
namespace {

static_assert(std::endian::native == std::endian::little, "traces are little-endian");

constexpr const char* kCopyAgain = "copy the file again, or record it again";

// Reads one member of "sizes": per layer a number, or an array of N.
std::vector<Bytes> read_sizes(const JsonObject& sizes, std::string_view key, std::uint32_t layers,
                              std::uint32_t experts) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  const Json* rows = sizes.find(key);
  if (rows == nullptr || !rows->is_array() || rows->size() != layers)
    sizes.fail(key, fmt::format("an array of {} layers", layers));
  std::vector<Bytes> all;
  all.reserve(std::size_t{layers} * experts);
  const auto number = [&](const Json& value) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost)
      sizes.fail(key, "numbers from 0 to 2^48");
    return value.get<Bytes>();
  };
  for (const Json& row : *rows) {
    if (!row.is_array()) {
      all.insert(all.end(), experts, number(row));
      continue;
    }
    if (row.size() != experts)
      sizes.fail(key, fmt::format("a number, or {} numbers, for each layer", experts));
    for (const Json& value : row) all.push_back(number(value));
  }
  return all;
}

}  // namespace

SluiceTrace::SluiceTrace(std::unique_ptr<TraceInput> input)
    : RoutingTrace(input->path()), input_(std::move(input)) {
  const auto ends = [&](const char* what) -> Error {
    return Error(ErrorKind::kCorrupt, std::string("the file ends within its ") + what)
        .in(path(), input_->offset())
        .fix(kCopyAgain);
  };
  std::vector<std::byte> bytes;
  Xxh3Stream hash;
  if (input_->peek(kTraceMagic.size()) != kTraceMagic)
    throw Error(ErrorKind::kInvalid, "not a routing trace")
        .in(path(), 0)
        .expected("a file of `sluice trace`")
        .fix("record into another file");
  if (!input_->read(16, bytes)) throw ends("first 16 bytes");
  hash.update(bytes);
  const auto version = number_at<std::uint32_t>(bytes, 8), length = number_at<std::uint32_t>(bytes, 12);
  if (version != kTraceVersion)
    throw Error(ErrorKind::kUnsupported, "unknown version of the trace format")
        .in(path(), 8)
        .expected(std::to_string(kTraceVersion))
        .found(std::to_string(version))
        .fix("use the program that recorded it");
  if (length > kMostHeaderBytes)
    throw Error(ErrorKind::kCorrupt, "header length is out of range")
        .in(path(), 12)
        .expected(fmt::format("at most {}", kMostHeaderBytes))
        .found(std::to_string(length))
        .fix(kCopyAgain);
  if (!input_->read(length, bytes)) throw ends("header");
  hash.update(bytes);
  std::vector<std::byte> check;
  if (!input_->read(8, check)) throw ends("header");
  if (const auto stored = number_at<std::uint64_t>(check, 0); stored != hash.digest())
    throw Error(ErrorKind::kCorrupt, "checksum of the header is wrong")
        .in(path(), 16 + std::uint64_t{length})
        .expected(hex64(stored))
        .found(hex64(hash.digest()))
        .fix(kCopyAgain);

  const std::string name = path() + ": header";
  const Json json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
  const JsonObject object(json, name);
  header_.format = "trace";
  header_.architecture = object.string("architecture");
  header_.layers = static_cast<std::uint32_t>(object.integer("layers", 1, kMostLayers));
  header_.experts = static_cast<std::uint32_t>(object.integer("experts", 1, kMostExperts));
  header_.top_k = static_cast<std::uint32_t>(object.integer("top_k", 1, header_.experts));
  header_.logits = true;
  std::uint64_t identity = 0;
  if (!parse_hex64(object.string("identity"), identity)) object.fail("identity", "16 hexadecimal digits");
  header_.identity = identity;
  const JsonObject sizes = object.object("sizes");
  header_.sizes.emplace(header_.layers, header_.experts, name);
  const auto full = read_sizes(sizes, "full", header_.layers, header_.experts),
             sm = read_sizes(sizes, "sm", header_.layers, header_.experts),
             exp = read_sizes(sizes, "exp", header_.layers, header_.experts),
             disk = read_sizes(sizes, "disk", header_.layers, header_.experts),
             exp_disk = read_sizes(sizes, "exp_disk", header_.layers, header_.experts);
  std::vector<Bytes> msb(full.size()), lsb(full.size());
  if (sizes.find("msb") != nullptr) {  // only for models in slices
    msb = read_sizes(sizes, "msb", header_.layers, header_.experts);
    lsb = read_sizes(sizes, "lsb", header_.layers, header_.experts);
  }
  for (std::uint32_t layer = 0; layer < header_.layers; ++layer)
    for (std::uint32_t e = 0; e < header_.experts; ++e) {
      const std::size_t i = std::size_t{layer} * header_.experts + e;
      if (exp_disk[i] > disk[i]) sizes.fail("exp_disk", "no more than `disk`");
      header_.sizes->set({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)},
                         {.full = full[i], .sm = sm[i], .exp = exp[i], .msb = msb[i], .lsb = lsb[i]}, disk[i],
                         exp_disk[i]);
    }
  next_layer_ = header_.layers;
  whole_bytes_ = input_->offset();
}

bool SluiceTrace::next(TraceEvent& event) {
  if (cut_off_) return false;
  const std::uint32_t layers = header_.layers;
  while (true) {
    const Bytes begin = input_->offset();
    RecordKind kind{};
    if (!read_record(kind)) {
      cut_off_ |= next_layer_ != layers;  // the file was cut between two records of a step
      return false;
    }
    const bool whole = next_layer_ == layers;
    const bool fits = kind == RecordKind::kRun    ? whole
                      : kind == RecordKind::kStep ? whole && any_run_
                                                  : !whole;
    // A run that was cut off within a step may be followed by another run only after that step was cut away.
    if (!fits)
      throw Error(ErrorKind::kCorrupt, "a record of the trace is out of order")
          .in(path(), begin)
          .expected(!any_run_ ? "a run record"
                    : whole   ? "a run or a step record"
                              : fmt::format("the record of layer {}", next_layer_))
          .found(fmt::format("a record of kind {}", static_cast<std::uint32_t>(kind)))
          .fix(kCopyAgain);
    if (kind == RecordKind::kRun) {
      any_run_ = true;
      parse_json({reinterpret_cast<const char*>(payload_.data()), payload_.size()}, path() + ": run");
    } else if (kind == RecordKind::kStep) {
      read_step();
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
               .token_ids = token_ids_};
      if (next_layer_ == layers) {
        whole_bytes_ = input_->offset();
        whole_steps_ = steps_;
        whole_sequences_ = sequences_;
      }
      return true;
    }
  }
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
  if (number < 1 || number > 3)
    throw Error(ErrorKind::kUnsupported, "unknown kind of record")
        .in(path(), begin)
        .expected("1 to 3")
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

void SluiceTrace::read_layer() {
  if (payload_.size() < 20) need(20);
  const auto step = number_at<std::uint64_t>(payload_, 0);
  const auto layer = number_at<std::uint32_t>(payload_, 8), tokens = number_at<std::uint32_t>(payload_, 12),
             choices = number_at<std::uint32_t>(payload_, 16);
  if (step != steps_ - 1)
    fail(0, "a layer of another step", std::to_string(steps_ - 1), std::to_string(step));
  if (layer != next_layer_) fail(8, "a layer is missing", std::to_string(next_layer_), std::to_string(layer));
  if (tokens != token_ids_.size())
    fail(12, "tokens of the layer are not those of its step", std::to_string(token_ids_.size()),
         std::to_string(tokens));
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
  for (std::size_t i = 0; i < logits_.size(); ++i)
    if (!std::isfinite(logits_[i]))
      fail(logits + 4 * i, "a logit is not a number", "a finite one", std::to_string(logits_[i]));
  ++next_layer_;
}

}  // namespace sluice::trace
