// `.csv`: "route_trace v1" of BigMoeOnEdge (docs/replay.md has the layout). All prefill rows of a layer and
// turn are one event; so are the rows of a layer of one decode step.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "trace/trace_kinds.h"

namespace sluice::trace {
namespace {

constexpr std::string_view kFirstLine = "# route_trace v1",
                           kColumns = "turn,phase,step,layer,slot,expert,weight,residency,expert_bytes";

struct Row {
  std::uint64_t turn = 0, step = 0;
  std::uint32_t phase = 0, layer = 0, slot = 0, expert = 0;
  float weight = 0;
  Bytes offset = 0;  // where its line begins
};

class CsvTrace final : public RoutingTrace {
 public:
  explicit CsvTrace(std::unique_ptr<TraceInput> input)
      : RoutingTrace(input->path()), input_(std::move(input)) {
    header_.format = "csv";
    read_header();
    by_layer_.resize(header_.layers);
    read_row();
  }

  bool next(TraceEvent& event) override {
    if (steps_ == 0 || layer_ == header_.layers) {
      if (!read_group()) return false;
      layer_ = 0;
    }
    const Layer& layer = by_layer_[layer_];
    event = {.step = steps_ - 1,
             .layer = layer_,
             .phase = group_phase_ == 0 ? TracePhase::kPrefill : TracePhase::kDecode,
             .tokens = static_cast<std::uint32_t>(layer.begin.size() - 1),
             .choices = layer.choices,
             .begin = layer.begin,
             .logits = {},
             .sequences = {},
             .token_ids = {}};
    ++layer_;
    return true;
  }

 private:
  struct Layer {
    std::vector<experts::Choice> choices;
    std::vector<std::uint32_t> begin;  // (tokens + 1)
    std::uint64_t last_step = 0;       // step of the last token
  };

  Error wrong(Bytes offset, std::string_view message) const {
    return Error(ErrorKind::kInvalid, message).in(path(), offset);
  }

  // The value behind "name=" in a comment line, up to the next space; empty if the name is missing.
  static std::string_view value_of(std::string_view line, std::string_view name) {
    const std::size_t at = line.find(name);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = line.substr(at + name.size());
    return rest.substr(0, rest.find(' '));
  }
  std::uint64_t number(std::string_view text, Bytes offset, const std::string& name, std::uint64_t least,
                       std::uint64_t most) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
      throw wrong(offset, "a number is out of range")
          .expected(fmt::format("{} from {} to {}", name, least, most))
          .found(fmt::format("\"{}\"", text.substr(0, 40)));
    return value;
  }

  void read_header() {
    std::optional<std::string_view> line = input_->line();
    if (!line || *line != kFirstLine)
      throw Error(ErrorKind::kUnsupported, "unknown version of the route trace")
          .in(path(), 0)
          .expected(fmt::format("\"{}\"", kFirstLine))
          .found(fmt::format("\"{}\"", line.value_or("").substr(0, 40)))
          .fix("name a .csv of this version, or a trace of `sluice trace`");
    std::map<std::uint64_t, Bytes> sizes;
    Bytes at = input_->offset();
    for (line = input_->line(); line && line->starts_with('#'); line = input_->line()) {
      if (line->find("n_layer=") != std::string_view::npos) {
        header_.layers =
            static_cast<std::uint32_t>(number(value_of(*line, "n_layer="), at, "n_layer", 1, 4096));
        header_.experts =
            static_cast<std::uint32_t>(number(value_of(*line, "n_expert="), at, "n_expert", 1, 4096));
        header_.top_k = static_cast<std::uint32_t>(
            number(value_of(*line, "n_expert_used="), at, "n_expert_used", 1, header_.experts));
        header_.architecture = std::string(value_of(*line, "arch="));
      } else if (line->starts_with("# layer=")) {
        const std::uint64_t layer = number(value_of(*line, "# layer="), at, "layer", 0, 4095);
        if (!sizes
                 .emplace(layer, number(value_of(*line, "expert_bytes="), at, "expert_bytes", 0,
                                        std::uint64_t{1} << 48))
                 .second)
          throw wrong(at, "the size of a layer stands twice").found(fmt::format("layer {}", layer));
      }
      at = input_->offset();
    }
    if (header_.layers == 0)
      throw wrong(at, "the header does not say the model's shape")
          .expected("a line \"# … n_layer=L n_expert=N n_expert_used=K\"");
    if (!line || *line != kColumns)
      throw wrong(at, "the line of column names is not there")
          .expected(fmt::format("\"{}\"", kColumns))
          .found(line ? fmt::format("\"{}\"", line->substr(0, 80)) : "the end of the file");
    if (sizes.empty()) return;
    if (sizes.size() != header_.layers || sizes.rbegin()->first + 1 != header_.layers)
      throw wrong(at, "the header does not say the size of every layer's experts")
          .expected(fmt::format("layers 0 to {}", header_.layers - 1))
          .found(fmt::format("{} of them, up to layer {}", sizes.size(), sizes.rbegin()->first));
    header_.sizes.emplace(header_.layers, header_.experts, path());
    for (const auto& [layer, bytes] : sizes)
      for (std::uint32_t e = 0; e < header_.experts; ++e)
        header_.sizes->set({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)},
                           {.full = bytes}, bytes);
  }

  // Reads the next row into row_; empty at the end.
  void read_row() {
    const Bytes at = input_->offset();
    const std::optional<std::string_view> line = input_->line();
    row_.reset();
    if (!line) return;
    std::string_view fields[9];
    std::string_view rest = *line;
    std::size_t count = 0;
    for (bool more = true; more; ++count) {
      const std::size_t comma = rest.find(',');
      if (count < 9) fields[count] = rest.substr(0, comma);
      more = comma != std::string_view::npos;
      if (more) rest.remove_prefix(comma + 1);
    }
    if (count != 9)
      throw wrong(at, "a row has a wrong number of columns")
          .expected("9")
          .found(std::to_string(count))
          .fix("if the file was cut off, copy or download it again");
    constexpr std::uint64_t kAny = std::numeric_limits<std::uint32_t>::max();
    Row row;
    row.offset = at;
    row.turn = number(fields[0], at, "turn", 0, kAny);
    row.phase = static_cast<std::uint32_t>(number(fields[1], at, "phase", 0, 1));
    row.step = number(fields[2], at, "step", 0, kAny);
    row.layer = static_cast<std::uint32_t>(number(fields[3], at, "layer", 0, header_.layers - 1));
    row.slot = static_cast<std::uint32_t>(number(fields[4], at, "slot", 0, header_.top_k - 1));
    row.expert = static_cast<std::uint32_t>(number(fields[5], at, "expert", 0, header_.experts - 1));
    const auto [end, error] =
        std::from_chars(fields[6].data(), fields[6].data() + fields[6].size(), row.weight);
    if (error != std::errc() || end != fields[6].data() + fields[6].size() || !std::isfinite(row.weight) ||
        row.weight < 0)
      throw wrong(at, "a weight is no probability")
          .expected("a number ≥ 0")
          .found(fmt::format("\"{}\"", fields[6].substr(0, 40)));
    number(fields[7], at, "residency", 0, 1);  // ignored: it describes the recorder's cache
    number(fields[8], at, "expert_bytes", 0, std::numeric_limits<std::uint64_t>::max());
    row_ = row;
  }

  bool in_group(const Row& row) const {
    return row.turn == group_turn_ && row.phase == group_phase_ &&
           (row.phase == 0 || row.step == group_step_);
  }

  // Reads all rows that belong together, layer by layer. False at the end of the file.
  bool read_group() {
    if (!row_) return false;
    const Bytes begin = row_->offset;
    if (steps_ > 0 &&
        (row_->turn < group_turn_ ||
         (row_->turn == group_turn_ && (row_->phase < group_phase_ || row_->step <= group_step_))))
      throw wrong(begin, "rows are not in order of turn, phase and step");
    group_turn_ = row_->turn;
    group_phase_ = row_->phase;
    group_step_ = row_->step;
    group_bytes_ = 0;
    for (Layer& layer : by_layer_) {
      layer.choices.clear();
      layer.begin.assign(1, 0);
    }
    while (row_ && in_group(*row_)) {
      if (group_phase_ == 0) group_step_ = std::max(group_step_, row_->step);
      read_token();
    }
    for (std::uint32_t layer = 0; layer < header_.layers; ++layer)
      if (by_layer_[layer].begin.size() == 1)
        throw wrong(row_ ? row_->offset : input_->offset(), "a step is not whole")
            .expected(fmt::format("rows of layers 0 to {}", header_.layers - 1))
            .found(fmt::format("none of layer {}", layer))
            .fix("if the file was cut off, copy or download it again");
    ++steps_;
    return true;
  }

  // Reads the rows of one token in one layer: slots 0 to k − 1, in this order.
  void read_token() {
    const Row first = *row_;
    Layer& layer = by_layer_[first.layer];
    if (layer.begin.size() > 1 && first.step <= layer.last_step)
      throw wrong(first.offset, "a token stands twice, or not in order")
          .expected(fmt::format("a step after {}", layer.last_step))
          .found(std::to_string(first.step));
    group_bytes_ += header_.top_k * sizeof(experts::Choice) + sizeof(std::uint32_t);
    input_->check_step(group_bytes_);
    for (std::uint32_t slot = 0; slot < header_.top_k; ++slot) {
      const bool there = row_ && row_->turn == first.turn && row_->phase == first.phase &&
                         row_->step == first.step && row_->layer == first.layer;
      if (!there || row_->slot != slot)
        throw wrong(row_ ? row_->offset : input_->offset(), "a token's experts are not complete")
            .expected(fmt::format("slot {} of step {}, layer {}", slot, first.step, first.layer))
            .found(!row_ ? "the end of the file"
                         : fmt::format("slot {} of step {}, layer {}", row_->slot, row_->step, row_->layer))
            .fix("if the file was cut off, copy or download it again");
      layer.choices.push_back({.expert = static_cast<std::uint16_t>(row_->expert), .weight = row_->weight});
      read_row();
    }
    const auto chosen = layer.choices.end() - header_.top_k;
    std::sort(chosen, layer.choices.end(), [](const auto& a, const auto& b) { return a.expert < b.expert; });
    if (std::adjacent_find(chosen, layer.choices.end(), [](const auto& a, const auto& b) {
          return a.expert == b.expert;
        }) != layer.choices.end())
      throw wrong(first.offset, "an expert stands twice in one token");
    layer.begin.push_back(static_cast<std::uint32_t>(layer.choices.size()));
    layer.last_step = first.step;
  }

  std::unique_ptr<TraceInput> input_;
  std::optional<Row> row_;       // read, but not yet in a group
  std::vector<Layer> by_layer_;  // for the group
  std::uint64_t group_turn_ = 0, group_step_ = 0, steps_ = 0;
  std::uint32_t group_phase_ = 0, layer_ = 0;  // layer_: layer of the next event
  Bytes group_bytes_ = 0;                      // bytes held in by_layer_
};

}  // namespace

std::unique_ptr<RoutingTrace> read_csv_trace(std::unique_ptr<TraceInput> input) {
  return std::make_unique<CsvTrace>(std::move(input));
}

}  // namespace sluice::trace
