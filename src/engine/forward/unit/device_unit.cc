#include "engine/forward/unit/device_unit.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "device/space.h"
#include "engine/forward/common/gating.h"
#include "kernels/products/input_form.h"

namespace sluice::engine {

using codec::InputForm;
using device::Access;
using device::Address;
using device::Event;
using device::Ticket;
using device::Traffic;

namespace {

constexpr Bytes kAlignment = 256;

std::size_t up_rows_of(const model::ModelConfig& config) {
  return std::size_t{config.moe.width} * config.activation.up_rows();
}

// A step of one token has as many rows as that has experts.
std::size_t rows_of_launch(const UnitParts& parts) {
  return std::max<std::size_t>(parts.tokens, parts.config.moe.top_k);
}

std::size_t experts_of_launch(const UnitParts& parts) {
  return std::min<std::size_t>(rows_of_launch(parts), parts.config.moe.experts);
}

std::span<const std::byte> bytes_of(const float* floats, std::size_t count) {
  return std::as_bytes(std::span(floats, count));
}

}  // namespace

// Copied into the operation: nothing of the host's is read while it runs.
struct DeviceUnit::OneExpert {
  fetch::ExpertView view;
  std::vector<std::uint32_t> tokens;
  std::size_t first_row = 0;  // its place among the rows of the launch
  Address out;
  kernels::Vector gate_bias = {}, up_bias = {}, down_bias = {};
};

DeviceUnit::Layout DeviceUnit::lay_out(Address begin, const UnitParts& parts) {
  Layout layout;
  const auto take = [&](Bytes bytes) {
    const Address at = begin + layout.bytes;
    layout.bytes += round_up(bytes, kAlignment);
    return at;
  };
  const std::size_t t = parts.tokens, r = rows_of_launch(parts), d = parts.config.hidden,
                    f = parts.config.moe.width, u = up_rows_of(parts.config);
  const kernels::InputForms forms = kernels::input_forms_of(parts.store.facts().formats);
  std::size_t inner = kernels::input_form(InputForm::kWords).floats(f);
  forms.each([&](InputForm form) {
    const kernels::InputFormRow& row = kernels::input_form(form);
    inner = std::max(inner, row.floats(f));
    const Bytes bytes = row.floats(d) * sizeof(float);
    const Address inputs = parts.dense_there ? Address{} : take(t * bytes);
    layout.forms.push_back({form, row.floats(d), inputs, take(r * bytes)});
  });
  layout.gate = take(r * f * sizeof(float));
  layout.up = take(r * u * sizeof(float));
  layout.inner_row = inner * sizeof(float);
  layout.inner = take(r * layout.inner_row);
  if (!parts.dense_there)
    for (Address& rows : layout.rows) rows = take(r * d * sizeof(float));
  const std::size_t biased = parts.expert_biases ? experts_of_launch(parts) : 0;
  for (Address& biases : layout.biases) biases = take(biased * (f + u + d) * sizeof(float));
  return layout;
}

Bytes DeviceUnit::activation_bytes(const UnitParts& parts) { return lay_out({}, parts).bytes; }

DeviceUnit::DeviceUnit(device::Device& device, kernels::UnitKernels& kernels, const UnitParts& parts,
                       const fetch::DeviceStoreOptions& options)
    : device_(device),
      kernels_(kernels),
      low_view_(parts.low_view),
      gating_(gating_of(parts.config.activation)),
      hidden_(parts.config.hidden),
      width_(parts.config.moe.width),
      up_rows_(up_rows_of(parts.config)),
      most_tokens_(parts.tokens),
      most_rows_(rows_of_launch(parts)),
      most_experts_(experts_of_launch(parts)),
      dense_there_(parts.dense_there),
      store_(device, parts.store, options),
      memory_(device.memory().allocate(device::Account::kActivations, activation_bytes(parts))),
      layout_(lay_out(memory_.address(), parts)) {}

DeviceUnit::~DeviceUnit() { abandon_event(); }

void DeviceUnit::join(const Workspace& dense) {
  SLUICE_CHECK(dense_there_);
  for (Form& form : layout_.forms) form.inputs = dense.arranged[static_cast<std::size_t>(form.form)].at;
  event_rows_ = dense.expert_rows.at;
  layout_.rows.fill(event_rows_);  // samples have their rows there
}

void DeviceUnit::begin_event(const UnitEvent& event) {
  SLUICE_CHECK(event.tokens <= most_tokens_, std::to_string(event.tokens));
  tokens_ = event.tokens;
  launches_ = 0;
  needed_ = !event.plan.uses.empty();
  if (needed_ && !dense_there_) send_inputs(event);
  store_.begin(event.layer, event.plan);
}

// Before copies of experts that are under way become demand: all experts wait for the inputs.
void DeviceUnit::send_inputs(const UnitEvent& event) {
  for (const Form& form : layout_.forms) {
    const float* const inputs = event.inputs[static_cast<std::size_t>(form.form)];
    sent_.push_back(
        device_.link().copy(bytes_of(inputs, tokens_ * form.floats), form.inputs, Traffic::kDemand));
    device_.compute().wait(sent_.back().event());
  }
}

void DeviceUnit::send_biases(const Held& held, std::size_t way, std::size_t which, OneExpert& expert) {
  kernels::Floats at{layout_.biases[way] + which * (width_ + up_rows_ + hidden_) * sizeof(float)};
  const auto send = [&](std::span<const float> bias, std::size_t room) {
    const kernels::Vector there{at, bias.size()};
    at = at + room;
    if (bias.empty()) return kernels::Vector{};
    sent_.push_back(device_.link().copy(bytes_of(bias.data(), bias.size()), there.data.at, Traffic::kDemand,
                                        ways_[way].free));
    device_.compute().wait(sent_.back().event());
    return there;
  };
  expert.gate_bias = send(held.gate_bias, width_);
  expert.up_bias = send(held.up_bias, up_rows_);
  expert.down_bias = send(held.down_bias, hidden_);
}

void DeviceUnit::compute(const ExpertWork& work, std::optional<fetch::ExpertStore::Pin> pin,
                         const HostWorkspace& /*host*/) {
  if (pin || held_rows_ + work.rows > most_rows_ || held_.size() == most_experts_) launch();
  Held one{.id = work.id,
           .tokens = {work.tokens.begin(), work.tokens.end()},
           .out = {work.out, work.rows * hidden_},
           .first_row = work.first_row,
           .gate_bias = work.gate_bias,
           .up_bias = work.up_bias,
           .down_bias = work.down_bias,
           .use = pin ? store_.use(std::move(*pin)) : store_.use(work.id)};
  if (!pin && one.use.ready.done()) {
    held_rows_ += work.rows;
    held_.push_back(std::move(one));
    return;
  }
  launch();  // in the order in which they were given
  enqueue({&one, 1}, launches_++ % kLaunches);
}

void DeviceUnit::launch() {
  if (held_.empty()) return;
  enqueue(held_, launches_++ % kLaunches);
  held_.clear();
  held_rows_ = 0;
}

void DeviceUnit::enqueue(std::span<Held> held, std::size_t way) {
  device::Stream& stream = device_.compute();
  stream.wait(ways_[way].free);
  std::vector<OneExpert> experts;
  std::vector<device::WeightUse> weights;
  std::size_t row = 0;
  for (Held& one : held) {
    stream.wait(one.use.ready);
    const Address rows = dense_there_ ? event_rows_ + one.first_row * hidden_ * sizeof(float)
                                      : layout_.rows[way] + row * hidden_ * sizeof(float);
    weights.push_back({one.use.bytes(), static_cast<std::uint32_t>(one.tokens.size())});
    experts.push_back({.view = one.use.view.view(one.use.low),
                       .tokens = std::move(one.tokens),
                       .first_row = row,
                       .out = rows});
    if (one.has_biases()) send_biases(one, way, experts.size() - 1, experts.back());
    row += experts.back().tokens.size();
  }
  stream.enqueue(
      {[this, experts, event_tokens = tokens_](const Access& access) { run(experts, event_tokens, access); },
       std::move(weights)});
  const Event done = stream.record();
  for (const Held& one : held) store_.used(one.id, done);
  if (dense_there_) {
    ways_[way].free = done.settled();
    return;
  }
  std::vector<Event> returned;
  for (std::size_t i = 0; i < held.size(); ++i) {
    returned_.push_back(device_.link().copy_back(experts[i].out, std::as_writable_bytes(held[i].out),
                                                 Traffic::kResult, done));
    returned.push_back(returned_.back().event().settled());
  }
  ways_[way].free = device::all_of(std::move(returned));
}

// On a thread of the device.
void DeviceUnit::run(std::span<const OneExpert> experts, std::size_t event_tokens, const Access& access) {
  std::vector<kernels::op::Mlp> mlps;
  for (const OneExpert& one : experts) {
    const std::size_t rows = one.tokens.size();
    kernels::InputFloats inputs{};
    for (const Form& form : layout_.forms) {
      kernels::Floats at{form.inputs};
      if (rows != event_tokens) {  // all tokens in order need no copy
        const kernels::Floats gathered = kernels::Floats{form.gathered} + one.first_row * form.floats;
        kernels_.run(access, kernels::op::GatherRows{.from = at,
                                                     .from_rows = event_tokens,
                                                     .columns = form.floats,
                                                     .which = one.tokens,
                                                     .to = gathered});
        at = gathered;
      }
      inputs[static_cast<std::size_t>(form.form)] = at;
    }
    mlps.push_back(mlp_of(one.view, rows, inputs, one.first_row, one.out));
    mlps.back().gate_bias = one.gate_bias;
    mlps.back().up_bias = one.up_bias;
    mlps.back().down_bias = one.down_bias;
  }
  kernels_.run(access, mlps);
}

kernels::op::Mlp DeviceUnit::mlp_of(const fetch::ExpertView& view, std::size_t tokens,
                                    const kernels::InputFloats& inputs, std::size_t first_row,
                                    Address out) const {
  const auto meant = [&](codec::MatrixRef matrix) {
    if (matrix.view == codec::SliceView::kLow) matrix.view = low_view_;
    return matrix;
  };
  return {.gate = meant(view.gate),
          .up = meant(view.up),
          .down = meant(view.down),
          .gating = gating_,
          .inputs = inputs,
          .tokens = tokens,
          .gate_room = kernels::Floats{layout_.gate} + first_row * width_,
          .up_room = kernels::Floats{layout_.up} + first_row * up_rows_,
          .inner = {layout_.inner + first_row * layout_.inner_row},
          .out = {out}};
}

void DeviceUnit::release_pins(fetch::ExpertStore& store) {
  launch();
  store_.release_pins();
  while (store_.pins() > 0 && store.next_needs_pins()) store_.wait_for_a_pin();
}

void DeviceUnit::finish(std::size_t count) {
  launch();
  for (std::size_t i = 0; i < std::min(count, returned_.size()); ++i) returned_[i].event().wait();
}

void DeviceUnit::finish_event() {
  launch();
  if (!needed_) return store_.finish_event();
  for (const auto* tickets : {&sent_, &returned_})
    for (const Ticket& ticket : *tickets) ticket.event().settled().wait();
  device_.compute().synchronize();
  for (const auto* tickets : {&sent_, &returned_})
    for (const Ticket& ticket : *tickets) ticket.event().wait();
  sent_.clear();
  returned_.clear();
  store_.finish_event();
}

void DeviceUnit::abandon_event() noexcept {
  held_.clear();
  held_rows_ = 0;
  store_.abandon_event();
  for (const auto* tickets : {&sent_, &returned_})
    for (const Ticket& ticket : *tickets) device_.link().withdraw(ticket);
  for (const auto* tickets : {&sent_, &returned_})
    for (const Ticket& ticket : *tickets) ticket.event().settled().wait();
  sent_.clear();
  returned_.clear();
  try {
    device_.compute().synchronize();
  } catch (const Error&) {  // an error of the event that is abandoned
  }
}

}  // namespace sluice::engine
