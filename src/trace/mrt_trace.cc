// `.mrt`: routing of DeepSeek-V2-Lite, repacked from ESFT (docs/replay.md has the layout). The file goes
// layer by layer and a replay goes token by token, so the whole file is kept in memory: three bytes per
// choice, at most kMostStepBytes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/float16.h"
#include "trace/trace_kinds.h"

namespace sluice::trace {
namespace {

constexpr std::size_t kHead = 28;
constexpr const char* kDownloadAgain = "copy or download the file again";

class MrtTrace final : public RoutingTrace {
 public:
  explicit MrtTrace(TraceInput& input) : RoutingTrace(input.path()) {
    std::vector<std::byte> head;
    if (!input.read(kHead, head)) throw ends(input, kHead);
    const auto word = [&](std::size_t i) { return number_at<std::uint32_t>(head, 4 * i); };
    if (word(1) != 1)
      throw Error(ErrorKind::kUnsupported, "unknown version of .mrt")
          .in(path(), 4)
          .expected("1")
          .found(std::to_string(word(1)))
          .fix("name a .mrt of this version, or a trace of `sluice trace`");
    header_.format = "mrt";
    header_.layers = in_range(head, 2, "layers", 1, 65536);
    header_.experts = in_range(head, 3, "experts", 1, 256);  // ids are bytes
    header_.top_k = in_range(head, 4, "experts of a token", 1, header_.experts);
    tokens_ = in_range(head, 5, "tokens", 0, 0xffffffffu);
    const std::uint32_t sequences = in_range(head, 6, "sequences", 0, tokens_);
    std::vector<std::byte> bytes;
    if (!input.read(Bytes{sequences} * 4, bytes)) throw ends(input, kHead + Bytes{sequences} * 4);
    std::uint64_t covered = 0;
    for (std::uint32_t s = 0; s < sequences; ++s) {
      lengths_.push_back(number_at<std::uint32_t>(bytes, std::size_t{s} * 4));
      covered += lengths_.back();
    }
    if (covered != tokens_)
      throw Error(ErrorKind::kCorrupt, "the sequences do not cover the tokens")
          .in(path(), kHead)
          .expected(std::to_string(tokens_))
          .found(std::to_string(covered))
          .fix(kDownloadAgain);
    body_begin_ = input.offset();
    const Bytes choices = Bytes{header_.layers} * tokens_ * header_.top_k;
    if (!input.read(3 * choices, body_)) throw ends(input, body_begin_ + 3 * choices);
    if (!input.peek(1).empty())
      throw Error(ErrorKind::kCorrupt, "the file continues behind its last weight")
          .in(path(), input.offset())
          .expected("the end of the file")
          .found("more bytes")
          .fix(kDownloadAgain);
    weights_begin_ = choices;
    begin_ = {0, header_.top_k};
    choices_.resize(header_.top_k);
  }

  bool next(TraceEvent& event) override {
    if (token_ == tokens_) return false;
    while (position_ == 0 && lengths_[sequence_] == 0) ++sequence_;
    const std::uint32_t k = header_.top_k;
    const std::size_t first = (std::size_t{layer_} * tokens_ + token_) * k;
    for (std::uint32_t i = 0; i < k; ++i) {
      const auto expert = static_cast<std::uint16_t>(body_[first + i]);
      const float weight = fp16_to_float(number_at<std::uint16_t>(body_, weights_begin_ + 2 * (first + i)));
      if (expert >= header_.experts)
        throw wrong(first + i, "there is no such expert", fmt::format("0 to {}", header_.experts - 1),
                    std::to_string(expert));
      if (!std::isfinite(weight) || weight < 0)
        throw wrong(weights_begin_ + 2 * (first + i), "a weight is no probability", "0 to 1",
                    std::to_string(weight));
      choices_[i] = {.expert = expert, .weight = weight};
    }
    std::ranges::sort(choices_, {}, &experts::Choice::expert);
    const auto twice = std::ranges::adjacent_find(choices_, {}, &experts::Choice::expert);
    if (twice != choices_.end())
      throw wrong(first, "an expert stands twice in one token", fmt::format("{} distinct ones", k),
                  fmt::format("expert {} twice", twice->expert));
    mark_ = {sequence_, 1, position_};
    event = {.step = token_,
             .layer = layer_,
             .phase = TracePhase::kPrefill,
             .tokens = 1,
             .choices = choices_,
             .begin = begin_,
             .logits = {},
             .sequences = {&mark_, 1},
             .token_ids = {}};
    if (++layer_ < header_.layers) return true;
    layer_ = 0;
    ++token_;
    if (++position_ == lengths_[sequence_]) {
      position_ = 0;
      ++sequence_;
    }
    return true;
  }

 private:
  std::uint32_t in_range(std::span<const std::byte> head, std::size_t word, const char* what,
                         std::uint32_t least, std::uint32_t most) const {
    const auto value = number_at<std::uint32_t>(head, 4 * word);
    if (value < least || value > most)
      throw Error(ErrorKind::kInvalid, fmt::format("number of {} is out of range", what))
          .in(path(), 4 * word)
          .expected(fmt::format("{} to {}", least, most))
          .found(std::to_string(value))
          .fix(kDownloadAgain);
    return value;
  }
  Error ends(const TraceInput& input, Bytes expected) const {
    return Error(ErrorKind::kCorrupt, "the file ends too early")
        .in(path(), input.offset())
        .expected(fmt::format("{} bytes, as its header says", expected))
        .found(std::to_string(input.offset()))
        .fix(kDownloadAgain);
  }
  Error wrong(std::size_t body_offset, const char* message, const std::string& expected,
              const std::string& found) const {
    return Error(ErrorKind::kCorrupt, message)
        .in(path(), body_begin_ + body_offset)
        .expected(expected)
        .found(found)
        .fix(kDownloadAgain);
  }

  std::uint32_t tokens_ = 0;
  std::vector<std::uint32_t> lengths_;  // by sequence
  std::vector<std::byte> body_;         // u8 ids (L, T, k), then f16 weights (L, T, k)
  Bytes body_begin_ = 0;
  std::size_t weights_begin_ = 0;
  std::uint32_t token_ = 0, layer_ = 0, sequence_ = 0, position_ = 0;  // position of the next event
  std::array<std::uint32_t, 2> begin_ = {0, 0};
  std::vector<experts::Choice> choices_;
  SequenceMark mark_;
};

}  // namespace

std::unique_ptr<RoutingTrace> read_mrt_trace(std::unique_ptr<TraceInput> input) {
  return std::make_unique<MrtTrace>(*input);
}

}  // namespace sluice::trace
