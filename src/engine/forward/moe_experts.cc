// The routed experts of a layer, each on its unit.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "engine/forward/moe_block.h"
#include "kernels/ops/host_ops.h"
#include "kernels/products/packed/packed_matmul.h"

namespace sluice::engine {
namespace {

using experts::Unit;
using kernels::ArrangedInputs;
using model::Role;

}  // namespace

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
  // The event cannot end while pins are held.
  struct Release {
    std::vector<fetch::ExpertStore::Pin>& pins;
    ~Release() { pins.clear(); }
  } release{pins_};
  if (device_ == nullptr)
    while (std::optional<fetch::ExpertStore::Pin> pin = store_.next_resident())
      pins_.push_back(std::move(*pin));
  const bool here = ops_.on_host(), has_shared = here && config_.moe.shared_width != 0;
  if (here && !has_shared) std::fill_n(w.host.branch, config_.hidden, 0.0f);
  std::optional<kernels::Mlp> shared;
  const ArrangedInputs inputs = w.host.inputs();
  if (has_shared) {
    const kernels::op::Mlp mlp = shared_mlp(layer, 1, w);
    shared = {.gate = mlp.gate,
              .up = mlp.up,
              .down = mlp.down,
              .inputs = inputs,
              .out = w.host.branch,
              .gating = mlp.gating};
  }
  const auto begin = now();
  works_.clear();
  for (const fetch::ExpertStore::Pin& pin : pins_)
    if (rows_.has(pin.id())) works_.push_back(work_of(pin.id(), &pin, inputs, w));
  compute_pinned(pins_, [&] { host_.compute_together(shared ? &*shared : nullptr, works_, w.host); });
  for (const fetch::ExpertStore::Pin& pin : pins_) {
    record(pin.id(), begin);
    if (rows_.has(pin.id())) computed_[rows_.slot(pin.id())] = 1;
  }
  if (has_shared) gate_shared_experts(layer, 1, w);
}

Unit MoeBlock::unit_of(experts::ExpertId id) const {
  if (assignment_.empty()) return Unit::kHost;
  const Unit unit = assignment_[rows_.slot(id)];
  SLUICE_CHECK(unit == Unit::kHost || device_ != nullptr,
               "an expert is assigned to a unit that is not there");
  return unit;
}

ExpertWork MoeBlock::work_of(experts::ExpertId id, const fetch::ExpertStore::Pin* pin,
                             const ArrangedInputs& inputs, const Workspace& w) const {
  return {.id = id,
          .view = pin != nullptr ? &pin->view() : nullptr,
          .weights = pin != nullptr ? pin->place().bytes() : 0,
          .rows = rows_.tokens(id).size(),
          .inputs = inputs,
          .out = w.host.expert_rows + rows_.first(id) * config_.hidden,
          .first_row = rows_.first(id),
          .gate_bias = bias_of(Role::kExpertGateBias, id.index),
          .up_bias = bias_of(Role::kExpertUpBias, id.index),
          .down_bias = bias_of(Role::kExpertDownBias, id.index),
          .tokens = rows_.tokens(id)};
}

std::span<const float> MoeBlock::bias_of(Role role, std::size_t expert) const {
  const kernels::Vector vector = weights_.vector_or_empty(role, layer_);
  const std::span<const float> all(kernels::host_floats(vector.data), vector.size);
  const std::size_t each = all.size() / config_.moe.experts;
  return all.subspan(expert * each, each);
}

void MoeBlock::bring_inputs(std::size_t tokens, const Workspace& w) {
  const auto on_host = [&](experts::ExpertId id) { return unit_of(id) == Unit::kHost; };
  if (std::ranges::none_of(event_experts_, on_host)) return;
  const std::size_t d = config_.hidden;
  ops_.receive(w.normed, {w.host.normed, tokens * d});
  input_forms_.each([&](codec::InputForm form) {
    kernels::input_form(form).arrange(kernels_, w.host.normed, tokens, d, d,
                                      w.host.arranged[static_cast<std::size_t>(form)]);
  });
}

void MoeBlock::send_rows(const Workspace& w) {
  const std::size_t d = config_.hidden;
  std::size_t first = 0, end = 0;  // rows that follow each other
  const auto send = [&] {
    if (first == end) return;
    ops_.send({w.host.expert_rows + first * d, (end - first) * d}, w.expert_rows + first * d,
              device::Traffic::kResult);
  };
  for (const experts::ExpertId id : event_experts_) {
    if (unit_of(id) == Unit::kDevice) continue;
    if (rows_.first(id) != end) {
      send();
      first = rows_.first(id);
    }
    end = rows_.first(id) + rows_.tokens(id).size();
  }
  send();
}

void MoeBlock::start_device(std::size_t layer, Role norm, const Step& step, const Workspace& w) {
  if (device_ == nullptr) return;
  const std::size_t tokens = step.tokens.size();
  given_.clear();
  device_->begin_event(
      {config_.sparse_index(static_cast<std::uint32_t>(layer)), *plan_, tokens, w.host.inputs()});
  for (const experts::DeviceUse& use : plan_->uses)
    if (device_->has(use)) compute_on_device(use.id, std::nullopt, tokens, w);
  device_->launch();
  resident_given_ = given_.size();
  const bool waits = waits_for_partial_state();
  // The unit computes in order: behind what waits for a copy, the prediction would wait, too.
  if (waits && !ops_.on_host()) look_ahead_partially(layer, norm, step, w);
  std::vector<fetch::ExpertStore::Pin> here;
  while (std::optional<fetch::ExpertStore::Pin> pin = store_.next_resident()) {
    const bool on_host = !rows_.has(pin->id()) || unit_of(pin->id()) == Unit::kHost;
    (on_host ? pins_ : here).push_back(std::move(*pin));
  }
  const auto place = [&](const fetch::ExpertStore::Pin& pin) {
    return std::ranges::find(plan_->uses, pin.id(), &experts::DeviceUse::id) - plan_->uses.begin();
  };
  std::ranges::sort(here, {}, place);
  for (fetch::ExpertStore::Pin& pin : here) compute_expert(std::move(pin), tokens, w);
  if (decider_->prefetches_to_device() && !waits) device_->prefetch(ahead_);
}

// Finds the damaged weights in the host's memory, where they may be, too, and names their place in a file.
// Otherwise it names the experts that the device has computed.
void MoeBlock::throw_damage_on_device(const Error& error) const {
  std::string experts;
  for (const experts::DeviceUse& use : plan_->uses) {
    store_.check_codes(use.id);
    experts += (experts.empty() ? "" : ", ") + std::to_string(use.id.index);
  }
  Error placed = error;
  throw placed.in("layer " + std::to_string(layer_) + ", on the device: expert " + experts)
      .fix("run `sluice verify`, then pack the model again");
}

void MoeBlock::compute_on_device(experts::ExpertId id, std::optional<fetch::ExpertStore::Pin> pin,
                                 std::size_t tokens, const Workspace& w) {
  const auto begin = now();
  const fetch::ExpertView view = pin ? pin->view() : fetch::ExpertView{};
  const ArrangedInputs inputs = device_->gathers() ? ArrangedInputs{} : gather(rows_.tokens(id), tokens, w);
  ExpertWork work = work_of(id, pin ? &*pin : nullptr, inputs, w);
  if (pin) work.view = &view;  // the pin moves
  device_->compute(work, std::move(pin), w.host);
  given_.push_back(id);
  record(id, begin);
}

void MoeBlock::compute_resident(std::size_t tokens, const Workspace& w) {
  if (device_ != nullptr) return device_->finish(resident_given_);
  while (std::optional<fetch::ExpertStore::Pin> pin = store_.next_resident())
    compute_expert(std::move(*pin), tokens, w);
}

void MoeBlock::compute_the_rest(std::size_t tokens, const Workspace& w) {
  for (fetch::ExpertStore::Pin& pin : pins_) compute_expert(std::move(pin), tokens, w);
  pins_.clear();
  for (;;) {
    if (device_ != nullptr) device_->release_pins(store_);
    std::optional<fetch::ExpertStore::Pin> pin = store_.next();
    if (!pin) return;
    compute_expert(std::move(*pin), tokens, w);
  }
}

ArrangedInputs MoeBlock::gather(std::span<const std::uint32_t> token_of_row, std::size_t tokens,
                                const Workspace& w) const {
  ArrangedInputs inputs = w.host.inputs();
  if (token_of_row.size() == tokens) return inputs;  // all tokens in order need no copy
  input_forms_.each([&](codec::InputForm form) {
    const auto at = static_cast<std::size_t>(form);
    const std::size_t row = kernels::input_form(form).floats(config_.hidden);
    for (std::size_t r = 0; r < token_of_row.size(); ++r)
      std::memcpy(w.host.gathered_rows[at] + r * row, w.host.arranged[at] + token_of_row[r] * row,
                  row * sizeof(float));
    inputs[at] = w.host.gathered_rows[at];
  });
  return inputs;
}

void MoeBlock::compute_rows(const fetch::ExpertStore::Pin& pin, bool low, std::size_t tokens,
                            const Workspace& w) {
  const std::span<const std::uint32_t> all = rows_.tokens(pin.id());
  const std::size_t high = all.size() - rows_.low_rows(pin.id());
  const std::span<const std::uint32_t> token_of_row = low ? all.subspan(high) : all.first(high);
  if (token_of_row.empty()) return;
  ExpertWork work = work_of(pin.id(), &pin, gather(token_of_row, tokens, w), w);
  work.rows = token_of_row.size();
  work.tokens = token_of_row;
  fetch::ExpertView low_view = pin.view();
  if (low) {
    work.out += high * config_.hidden;
    work.first_row += high;
    for (codec::MatrixRef* const matrix : {&low_view.gate, &low_view.up, &low_view.down})
      matrix->view = codec::SliceView::kLow;
    work.view = &low_view;
  }
  compute_pinned({&pin, 1}, [&] { host_.compute(work, w.host); });
}

void MoeBlock::compute_expert(fetch::ExpertStore::Pin pin, std::size_t tokens, const Workspace& w) {
  const experts::ExpertId id = pin.id();
  if (!rows_.has(id)) return;  // fetched, but no token chose it
  if (unit_of(id) == Unit::kDevice) {
    if (std::ranges::find(given_, id) != given_.end()) return device_->take(std::move(pin));
    return compute_on_device(id, std::move(pin), tokens, w);
  }
  const auto begin = now();
  compute_rows(pin, false, tokens, w);
  compute_rows(pin, true, tokens, w);
  computed_[rows_.slot(id)] = 1;
  record(id, begin);
}

}  // namespace sluice::engine
