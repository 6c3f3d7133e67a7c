#include "engine/forward/moe_block.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/stopwatch.h"
#include "engine/forward/packed_view.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/products/words/matmul.h"

namespace sluice::engine {
namespace {

using experts::ExpertId;
using kernels::packed_floats;
using kernels::SlicedWeight;
using kernels::Weight;
using kernels::WeightView;
using model::Role;

std::size_t place_of(experts::State state) {
  return std::string_view("FCSEM").find(static_cast<char>(state));
}

// Lists the chunks of a packed view in `chunks`, which must outlive the result. `low`: the view that a lone
// MSB slice stands for.
WeightView weight_of(const fetch::MatrixView& view, codec::SliceView low,
                     std::vector<kernels::PackedChunk>& chunks) {
  if (view.sliced())
    return SlicedWeight{view.slices, view.slices.lsb == nullptr ? low : codec::SliceView::kHigh};
  if (view.place == nullptr) return Weight{view.data, view.dtype, view.rows, view.cols};
  return packed_view(*view.place, view.base, view.rest, chunks);
}

}  // namespace

MoeBlock::MoeBlock(const kernels::Context& kernels, const model::ModelConfig& config,
                   const DenseWeights& weights, fetch::ExpertStore& store, experts::LayerPolicies& policies,
                   codec::SliceView low_view, Statistics& statistics)
    : kernels_(kernels),
      config_(config),
      weights_(weights),
      store_(store),
      policies_(policies),
      low_view_(low_view),
      statistics_(statistics),
      reads_ahead_(policies.prefetch->name() != "none") {}

void MoeBlock::run(std::size_t layer, Role norm, const Step& step, const Workspace& w) {
  const std::size_t tokens = step.tokens.size();
  const std::size_t sparse_layer = config_.sparse_index(static_cast<std::uint32_t>(layer));
  if (leave_out_experts_) return shared_experts(layer, tokens, w);
  const experts::ScoresView scores = route(layer, step, w);
  group_by_expert(sparse_layer);
  Stopwatch deciding;
  policies_.placement->assign({active_, active_tokens_}, assignment_);
  const experts::EventOutcome& outcome = decide(scores, w);
  statistics_.now().policy_s += deciding.lap();
  // Ends the event on leaving, even by an error; the store keeps what it can.
  struct Event {
    fetch::ExpertStore* store;
    ~Event() {
      if (store != nullptr) store->abandon_event();
    }
  } event{&store_};
  ExpertStatistics& count = statistics_.now();
  count.accesses += active_.size();
  count_found(outcome);
  const fetch::EventReads reads = begin_fetch(sparse_layer, outcome);
  // Called only now that the decisions are being carried out: after an observer's error, engine and store
  // still agree.
  if (observer_ != nullptr) observer_->on_decisions(static_cast<std::uint32_t>(sparse_layer), outcome);
  count.hits += outcome.hits.size() + reads.prefetched;
  count.misses += outcome.misses.size() - reads.prefetched;
  count.partial += reads.partial;
  count.bytes_read += reads.bytes;

  look_ahead(layer, norm, step, w, false);
  if (policies_.sliced())
    kernels::pack_for_slices(kernels_, w.normed, tokens, config_.hidden, config_.hidden, w.packed_slices);
  if (tokens == 1)
    start_with_what_is_here(layer, w);
  else
    shared_experts(layer, tokens, w);
  while (const std::optional<fetch::ExpertStore::Pin> pin = store_.next()) compute_expert(*pin, w);
  event.store = nullptr;
  combine(tokens, w);
  look_ahead(layer, norm, step, w, true);
}

void MoeBlock::begin_step(bool first_of_generation) {
  if (policies_.constraint && !leave_out_experts_ && first_of_generation)
    policies_.constraint->begin_generation();
  trial_allows_ = true;
  if (!on_trial()) return;
  trial_allows_ = trial_.begin_step();
  done_as_asked_ = true;
  step_watch_.lap();
  needed_before_ = statistics_.decode.bytes_read + store_.prefetch_counters().used_bytes;
  wasted_before_ = store_.prefetch_counters().wasted_bytes;
}

bool MoeBlock::on_trial() const {
  return reads_ahead_ && !leave_out_experts_ && statistics_.phase == Phase::kDecode;
}

void MoeBlock::end_step() {
  if (policies_.constraint && !leave_out_experts_ && statistics_.phase == Phase::kDecode)
    policies_.constraint->end_step();
  if (!on_trial() || !done_as_asked_) return;
  const fetch::PrefetchCounters& ahead = store_.prefetch_counters();
  trial_.end_step(step_watch_.lap(), statistics_.decode.bytes_read + ahead.used_bytes - needed_before_,
                  ahead.wasted_bytes - wasted_before_);
}

const experts::EventOutcome& MoeBlock::decide(const experts::ScoresView& scores, const Workspace& w) {
  experts::Residency& residency = policies_.residency(scores.layer);
  experts::MissConstraint* const constraint = scores.prompt ? nullptr : policies_.constraint.get();
  experts::SliceDemand demand;
  if (policies_.sliced()) {
    slice_demands_.gather(scores, routing_);
    demand = slice_demands_.demand(constraint != nullptr ? constraint->lsb_allowance(active_, residency)
                                                         : experts::kAnyBytes);
  }
  const experts::EventOutcome& outcome =
      residency.on_event(active_, {w.mean_scores, config_.moe.experts}, active_tokens_, demand);
  if (constraint != nullptr) constraint->on_event(outcome);
  if (policies_.sliced() && !scores.prompt) count_low(outcome);
  return outcome;
}

void MoeBlock::count_low(const experts::EventOutcome& outcome) {
  is_low_.assign(config_.moe.experts, 0);
  for (const auto* used : {&outcome.hits, &outcome.misses})
    for (const experts::Admission& one : *used)
      is_low_[one.id.index] = !one.view.empty() && !one.view.has(experts::Part::kLsb) ? 1 : 0;
  const auto tokens = static_cast<std::uint32_t>(routing_.begin.size() - 1);
  double low = 0;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    double part = 0, sum = 0;
    for (const experts::Choice& choice : routing_.token(t)) {
      sum += choice.weight;
      part += is_low_[choice.expert] != 0 ? choice.weight : 0;
    }
    low += sum > 0 ? part / sum : 0;
  }
  statistics_.low_tokens += tokens;
  statistics_.low_share += low;
  if (policies_.guard) policies_.guard->add_precision(tokens, low);
}

void MoeBlock::count_found(const experts::EventOutcome& outcome) {
  ExpertStatistics& count = statistics_.now();
  if (policies_.sliced())
    return count.slices.add(outcome, store_.sizes(), experts::least_parts(policies_.precision.mode),
                            experts::Part::kMsb | experts::Part::kLsb);
  for (const auto* used : {&outcome.hits, &outcome.misses})
    for (const experts::Admission& one : *used) count.found[place_of(experts::state_of(one.before))] += 1;
}

void MoeBlock::look_ahead(std::size_t layer, Role norm, const Step& step, const Workspace& w, bool computed) {
  // The next event of an encoder is the same layer's next chunk.
  if (config_.has_encoder() && step.phase == Phase::kPrefill) return;
  const std::size_t tokens = step.tokens.size();
  const std::uint32_t sparse_layer = config_.sparse_index(static_cast<std::uint32_t>(layer));
  experts::Prefetch& prefetch = *policies_.prefetch;
  if (computed && !prefetch.wants_next_scores()) return;
  if (!trial_allows_) {
    if (!computed && trial_.decided() && !trial_.pays()) ++statistics_.prefetch_paused;
    return;
  }
  if (!computed) {
    const fetch::PrefetchCounters& now = store_.prefetch_counters();
    may_prefetch_ =
        guard_.allows(now.used_bytes - ahead_before_.used_bytes, now.delay_bytes - ahead_before_.delay_bytes);
    ahead_before_ = now;
    if (!may_prefetch_) {
      ++statistics_.prefetch_paused;
      done_as_asked_ = false;
    }
  }
  if (!may_prefetch_) return;
  Stopwatch deciding;
  experts::LayerState state;
  state.layer = sparse_layer;
  state.layers = config_.sparse_layers();
  state.experts = static_cast<std::uint32_t>(config_.moe.experts);
  state.routing = &routing_;
  state.residency = &policies_.residency(sparse_layer);
  state.top_k = static_cast<std::uint32_t>(config_.moe.top_k);
  experts::ScoresView next;
  if (prefetch.wants_next_scores() && sparse_layer + 1 < state.layers) {
    std::size_t next_layer = layer + 1;
    while (!config_.sparse[next_layer]) ++next_layer;
    state.residency = &policies_.residency(sparse_layer + 1);
    next = next_scores(next_layer, norm, tokens, w, computed);
    state.next = &next;
  }
  proposals_.clear();
  prefetch.propose(state, proposals_);
  if (policies_.sliced()) {
    const experts::Parts wanted = step.phase == Phase::kPrefill
                                      ? experts::Part::kMsb | experts::Part::kLsb
                                      : experts::least_parts(policies_.precision.mode);
    for (experts::PartRequest& proposal : proposals_) proposal.parts = wanted;
  }
  statistics_.now().policy_s += deciding.lap();
  store_.prefetch(proposals_);
}

experts::ScoresView MoeBlock::next_scores(std::size_t next, Role norm, std::size_t tokens, const Workspace& w,
                                          bool computed) {
  const std::size_t d = config_.hidden, experts = config_.moe.experts;
  float* const stream = w.expert_rows;  // no expert uses these rows now
  std::copy_n(w.hidden, tokens * d, stream);
  if (computed) kernels::add(kernels_, w.branch, tokens * d, stream);
  kernels::rms_norm(kernels_, stream, tokens, d, d, weights_.vector(norm, static_cast<std::int32_t>(next)),
                    config_.rms_eps, stream, d);
  score(next, stream, tokens, w);
  experts::ScoresView view;
  view.layer = config_.sparse_index(static_cast<std::uint32_t>(next));
  view.experts = static_cast<std::uint32_t>(experts);
  view.tokens = static_cast<std::uint32_t>(tokens);
  view.logits = {w.router_logits, tokens * experts};
  view.scores = {w.scores, tokens * experts};
  return view;
}

fetch::EventReads MoeBlock::begin_fetch(std::size_t sparse_layer, const experts::EventOutcome& outcome) {
  if (!policies_.whole_layers) return store_.begin(outcome, {active_, active_tokens_}, *policies_.scheduler);
  whole_outcome_ = outcome;
  whole_layer_.clear();
  whole_tokens_.clear();
  // Not counted in 16 bits: there may be 65,536 experts.
  for (std::size_t e = 0, next = 0; e < config_.moe.experts; ++e) {
    const ExpertId id{static_cast<std::uint16_t>(sparse_layer), static_cast<std::uint16_t>(e)};
    const bool active = next < active_.size() && active_[next] == id;
    if (!active) whole_outcome_.misses.push_back({id, policies_.residency(sparse_layer).parts(id)});
    whole_layer_.push_back(id);
    whole_tokens_.push_back(active ? active_tokens_[next++] : 0);
  }
  std::ranges::sort(whole_outcome_.misses, {}, &experts::Admission::id);
  return store_.begin(whole_outcome_, {whole_layer_, whole_tokens_}, *policies_.scheduler);
}

experts::ScoresView MoeBlock::route(std::size_t layer, const Step& step, const Workspace& w) {
  const std::size_t tokens = step.tokens.size(), experts = config_.moe.experts;
  score(layer, w.normed, tokens, w);
  for (std::size_t e = 0; e < experts; ++e) {
    double sum = 0;
    for (std::size_t t = 0; t < tokens; ++t) sum += w.scores[t * experts + e];
    w.mean_scores[e] = static_cast<float>(sum / static_cast<double>(tokens));
  }

  sequence_of_token_.resize(tokens);
  for (std::size_t s = 0; s < step.spans.size(); ++s)
    std::fill_n(sequence_of_token_.begin() + static_cast<std::ptrdiff_t>(step.spans[s].first_token),
                step.spans[s].tokens, static_cast<std::uint32_t>(s));

  experts::ScoresView view;
  view.layer = config_.sparse_index(static_cast<std::uint32_t>(layer));
  view.experts = static_cast<std::uint32_t>(experts);
  view.tokens = static_cast<std::uint32_t>(tokens);
  view.logits = {w.router_logits, tokens * experts};
  view.scores = {w.scores, tokens * experts};
  view.sequence = sequence_of_token_;
  view.prompt = step.phase == Phase::kPrefill;
  policies_.router->route(view, policies_.residency(view.layer), routing_);
  experts::set_precision(policies_.precision, routing_);
  statistics_.routing.add(view, routing_);
  if (!view.prompt) {
    const double before = statistics_.decode_routing.mass_lost;
    statistics_.decode_routing.add(view, routing_);
    if (policies_.guard) {
      policies_.guard->add_routing(view.tokens, statistics_.decode_routing.mass_lost - before);
      if (policies_.precision.mode == experts::PrecisionMode::kDbsc)
        policies_.guard->limit_precision(routing_);
    }
  }
  if (observer_ != nullptr) observer_->on_routing(view, routing_);
  return view;
}

void MoeBlock::score(std::size_t layer, const float* normed, std::size_t tokens, const Workspace& w) {
  const std::size_t experts = config_.moe.experts;
  kernels::Context exact = kernels_;  // routers are not rounded
  exact.products = kernels::Products::kExact;
  const float* packed = w.packed;
  if (normed != w.normed || kernels_.rounds()) {
    kernels::pack_activations(exact, normed, tokens, config_.hidden, config_.hidden, w.gathered);
    packed = w.gathered;
  }
  kernels::matmul(exact, packed, tokens, weights_.matrix(Role::kRouter, static_cast<std::int32_t>(layer)), {},
                  w.router_logits, experts);
  std::copy_n(w.router_logits, tokens * experts, w.scores);
  kernels::softmax_rows(kernels_, w.scores, tokens, experts);
}

void MoeBlock::group_by_expert(std::size_t sparse_layer) {
  const std::size_t experts = config_.moe.experts;
  slot_of_expert_.assign(experts, 0);  // first pass: how many tokens chose the expert
  for (const experts::Choice& choice : routing_.choices) slot_of_expert_[choice.expert] += 1;
  active_.clear();
  active_tokens_.clear();
  begin_.assign(1, 0);
  for (std::size_t e = 0; e < experts; ++e) {
    const std::uint32_t count = slot_of_expert_[e];
    if (count == 0) continue;
    slot_of_expert_[e] = static_cast<std::uint32_t>(active_.size());
    active_.push_back({static_cast<std::uint16_t>(sparse_layer), static_cast<std::uint16_t>(e)});
    active_tokens_.push_back(count);
    begin_.push_back(begin_.back() + count);
  }
  token_of_row_.resize(routing_.choices.size());
  row_of_choice_.resize(routing_.choices.size());
  std::vector<std::uint32_t>& filled = row_fill_;
  filled.assign(begin_.begin(), begin_.end() - 1);
  const std::size_t tokens = routing_.begin.size() - 1;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    for (std::uint32_t c = routing_.begin[t]; c < routing_.begin[t + 1]; ++c) {
      const std::uint32_t row = filled[slot_of_expert_[routing_.choices[c].expert]]++;
      token_of_row_[row] = t;
      row_of_choice_[c] = row;
    }
  }
}

Mlp MoeBlock::shared_mlp(std::size_t layer, const Workspace& w) const {
  const auto at = static_cast<std::int32_t>(layer);
  return {weights_.matrix(Role::kSharedGate, at), weights_.matrix(Role::kSharedUp, at),
          weights_.matrix(Role::kSharedDown, at), w.packed, w.branch};
}

void MoeBlock::shared_experts(std::size_t layer, std::size_t tokens, const Workspace& w) {
  if (config_.moe.shared_width != 0) {
    compute(kernels_, shared_mlp(layer, w), tokens, w);
    gate_shared_experts(layer, tokens, w);
  } else {
    std::fill_n(w.branch, tokens * config_.hidden, 0.0f);
  }
}

void MoeBlock::gate_shared_experts(std::size_t layer, std::size_t tokens, const Workspace& w) {
  if (!config_.moe.shared_gate) return;
  const auto at = static_cast<std::int32_t>(layer);
  kernels::matmul(kernels_, w.packed, tokens, weights_.matrix(Role::kSharedExpertGate, at), {}, w.gate, 1);
  for (std::size_t t = 0; t < tokens; ++t)
    kernels::scale(kernels_, kernels::sigmoid(w.gate[t]), config_.hidden, w.branch + t * config_.hidden);
}

template <class Work>
void MoeBlock::compute_pinned(std::span<const fetch::ExpertStore::Pin> pins, const Work& work) const {
  try {
    work();
  } catch (const Error& error) {
    if (kernels::is_damaged_weight(error))
      for (const fetch::ExpertStore::Pin& pin : pins) store_.check_codes(pin);
    throw;
  }
}

void MoeBlock::start_with_what_is_here(std::size_t layer, const Workspace& w) {
  const bool shared = config_.moe.shared_width != 0;
  // Also after an error: the event cannot end while pins are held.
  struct Release {
    std::vector<fetch::ExpertStore::Pin>& pins;
    ~Release() { pins.clear(); }
  } release{pins_};
  mlps_.clear();
  if (shared)
    mlps_.push_back(shared_mlp(layer, w));
  else
    std::fill_n(w.branch, config_.hidden, 0.0f);
  while (std::optional<fetch::ExpertStore::Pin> pin = store_.next_resident()) {
    if (is_used(pin->id())) {
      if (chunks_.size() == pins_.size()) chunks_.emplace_back();
      mlps_.push_back(mlp_of(*pin, chunks_[pins_.size()], packed_of(w), w));
    }
    pins_.push_back(std::move(*pin));
  }
  const auto begin = now();
  compute_pinned(pins_, [&] { compute_together(kernels_, mlps_, w); });
  for (const fetch::ExpertStore::Pin& pin : pins_) record(pin, begin);
  if (shared) gate_shared_experts(layer, 1, w);
}

const float* MoeBlock::packed_of(const Workspace& w) const {
  return policies_.sliced() ? w.packed_slices : w.packed;
}

std::size_t MoeBlock::packed_row() const {
  return policies_.sliced() ? kernels::sliced_floats(config_.hidden) : packed_floats(config_.hidden);
}

bool MoeBlock::is_used(ExpertId id) const {
  const std::uint32_t slot = slot_of_expert_[id.index];
  return slot < active_.size() && active_[slot] == id;
}

Mlp MoeBlock::mlp_of(const fetch::ExpertStore::Pin& pin, PackedChunks& chunks, const float* packed,
                     const Workspace& w) const {
  const fetch::ExpertView& view = pin.view();
  return {weight_of(view.gate, low_view_, chunks[0]), weight_of(view.up, low_view_, chunks[1]),
          weight_of(view.down, low_view_, chunks[2]), packed,
          w.expert_rows + begin_[slot_of_expert_[pin.id().index]] * config_.hidden};
}

void MoeBlock::compute_expert(const fetch::ExpertStore::Pin& pin, const Workspace& w) {
  if (!is_used(pin.id())) return;  // fetched, but no token chose it
  const std::uint32_t slot = slot_of_expert_[pin.id().index];
  const std::size_t first = begin_[slot], rows = begin_[slot + 1] - first;
  const std::size_t row = packed_row();
  const std::size_t tokens = routing_.begin.size() - 1;
  const float* packed = packed_of(w);
  if (rows != tokens) {  // all tokens in order need no copy
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(w.gathered + r * row, packed + token_of_row_[first + r] * row, row * sizeof(float));
    packed = w.gathered;
  }
  const auto begin = now();
  if (chunks_.empty()) chunks_.emplace_back();
  compute_pinned({&pin, 1}, [&] { compute(kernels_, mlp_of(pin, chunks_[0], packed, w), rows, w); });
  record(pin, begin);
}

std::chrono::steady_clock::time_point MoeBlock::now() const {
  return timeline_ != nullptr ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
}

void MoeBlock::record(const fetch::ExpertStore::Pin& pin, std::chrono::steady_clock::time_point begin) {
  if (timeline_ == nullptr) return;
  timeline_->add(
      {fetch::TimelineEntry::Kind::kCompute, pin.id(), 0, 0, 0, 0, begin, std::chrono::steady_clock::now()});
}

void MoeBlock::combine(std::size_t tokens, const Workspace& w) {
  const std::size_t d = config_.hidden;
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::uint32_t c = routing_.begin[t]; c < routing_.begin[t + 1]; ++c)
      kernels::add_scaled(kernels_, w.expert_rows + row_of_choice_[c] * d, routing_.choices[c].weight, d,
                          w.branch + t * d);
}

}  // namespace sluice::engine
