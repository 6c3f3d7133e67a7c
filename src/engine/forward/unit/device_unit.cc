#include "engine/forward/unit/device_unit.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "device/space.h"
#include "engine/forward/gating.h"
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

std::span<const std::byte> bytes_of(const float* floats, std::size_t count) {
  return std::as_bytes(std::span(floats, count));
}

}  // namespace

// Copied into the operation: nothing of the host's is read while it runs.
struct DeviceUnit::Launch {
  fetch::DeviceStore::Use expert;
  std::size_t way = 0, event_tokens = 0;
  Address out;
  std::vector<std::uint32_t> tokens;
  bool gate_bias = false, up_bias = false, down_bias = false;
};

DeviceUnit::Layout DeviceUnit::lay_out(Address begin, const UnitParts& parts) {
  Layout layout;
  const auto take = [&](Bytes bytes) {
    const Address at = begin + layout.bytes;
    layout.bytes += round_up(bytes, kAlignment);
    return at;
  };
  const std::size_t t = parts.tokens, d = parts.config.hidden, f = parts.config.moe.width,
                    u = up_rows_of(parts.config);
  const kernels::InputForms forms = kernels::input_forms_of(parts.store.facts().formats);
  std::size_t inner = kernels::input_form(InputForm::kWords).floats(f);
  forms.each([&](InputForm form) {
    const kernels::InputFormRow& row = kernels::input_form(form);
    inner = std::max(inner, row.floats(f));
    const Bytes bytes = t * row.floats(d) * sizeof(float);
    const Address inputs = parts.dense_there ? Address{} : take(bytes);
    layout.forms.push_back({form, row.floats(d), inputs, take(bytes)});
  });
  layout.gate = take(t * f * sizeof(float));
  layout.up = take(t * u * sizeof(float));
  layout.inner = take(t * inner * sizeof(float));
  if (!parts.dense_there)
    for (Address& rows : layout.rows) rows = take(t * d * sizeof(float));
  for (Address& biases : layout.biases) biases = take((f + u + d) * sizeof(float));
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
      dense_there_(parts.dense_there),
      store_(device, parts.store, options),
      memory_(device.memory().allocate(device::Account::kActivations, activation_bytes(parts))),
      layout_(lay_out(memory_.address(), parts)) {}

DeviceUnit::~DeviceUnit() { abandon_event(); }

void DeviceUnit::join(const Workspace& dense) {
  SLUICE_CHECK(dense_there_);
  for (Form& form : layout_.forms) form.inputs = dense.arranged[static_cast<std::size_t>(form.form)].at;
  event_rows_ = dense.expert_rows.at;
  layout_.rows.fill(event_rows_);  // of samples
}

void DeviceUnit::begin_event(const UnitEvent& event) {
  SLUICE_CHECK(event.tokens <= most_tokens_, std::to_string(event.tokens));
  tokens_ = event.tokens;
  launches_ = 0;
  store_.begin(event.layer, event.plan);
  needed_ = !event.plan.uses.empty();
  if (!needed_ || dense_there_) return;
  for (const Form& form : layout_.forms) {
    const float* const inputs = event.inputs[static_cast<std::size_t>(form.form)];
    sent_.push_back(
        device_.link().copy(bytes_of(inputs, tokens_ * form.floats), form.inputs, Traffic::kDemand));
    device_.compute().wait(sent_.back().event());
  }
}

std::array<Event, 3> DeviceUnit::send_biases(const ExpertWork& work, std::size_t way) {
  std::array<Event, 3> events;
  const Address at = layout_.biases[way];
  const auto send = [&](std::size_t i, std::span<const float> bias, Address to) {
    if (bias.empty()) return;
    sent_.push_back(
        device_.link().copy(bytes_of(bias.data(), bias.size()), to, Traffic::kDemand, ways_[way].free));
    events[i] = sent_.back().event();
  };
  send(0, work.gate_bias, at);
  send(1, work.up_bias, at + width_ * sizeof(float));
  send(2, work.down_bias, at + (width_ + up_rows_) * sizeof(float));
  return events;
}

void DeviceUnit::compute(const ExpertWork& work, std::optional<fetch::ExpertStore::Pin> pin,
                         const HostWorkspace& /*host*/) {
  const std::size_t way = launches_++ % kLaunches;
  Launch launch{
      .expert = pin ? store_.use(std::move(*pin)) : store_.use(work.id),
      .way = way,
      .event_tokens = tokens_,
      .out = dense_there_ ? event_rows_ + work.first_row * hidden_ * sizeof(float) : layout_.rows[way],
      .tokens = {work.tokens.begin(), work.tokens.end()},
      .gate_bias = !work.gate_bias.empty(),
      .up_bias = !work.up_bias.empty(),
      .down_bias = !work.down_bias.empty()};
  device::Stream& stream = device_.compute();
  for (const Event& bias : send_biases(work, way)) stream.wait(bias);
  stream.wait(ways_[way].free);
  stream.wait(launch.expert.ready);
  const std::vector<device::WeightUse> weights = {
      {launch.expert.bytes(), static_cast<std::uint32_t>(work.rows)}};
  stream.enqueue(
      {[this, launch = std::move(launch)](const Access& access) { run(launch, access); }, weights});
  const Event done = stream.record();
  store_.used(work.id, done);
  if (dense_there_) {
    ways_[way].free = done.settled();
    return;
  }
  const std::span<float> rows(work.out, work.rows * hidden_);
  returned_.push_back(
      device_.link().copy_back(layout_.rows[way], std::as_writable_bytes(rows), Traffic::kResult, done));
  ways_[way].free = returned_.back().event().settled();
}

// On a thread of the device.
void DeviceUnit::run(const Launch& launch, const Access& access) {
  const std::size_t rows = launch.tokens.size();
  kernels::InputFloats inputs{};
  for (const Form& form : layout_.forms) {
    kernels::Floats at{form.inputs};
    if (rows != launch.event_tokens) {  // all tokens in order need no copy
      kernels_.run(access, kernels::op::GatherRows{.from = at,
                                                   .from_rows = launch.event_tokens,
                                                   .columns = form.floats,
                                                   .which = launch.tokens,
                                                   .to = {form.gathered}});
      at = {form.gathered};
    }
    inputs[static_cast<std::size_t>(form.form)] = at;
  }
  kernels::op::Mlp mlp = mlp_of(launch.expert.view.view(launch.expert.low), rows, inputs, launch.out);
  const kernels::Floats biases{layout_.biases[launch.way]};
  if (launch.gate_bias) mlp.gate_bias = {biases, width_};
  if (launch.up_bias) mlp.up_bias = {biases + width_, up_rows_};
  if (launch.down_bias) mlp.down_bias = {biases + width_ + up_rows_, hidden_};
  kernels_.run(access, std::span(&mlp, 1));
}

kernels::op::Mlp DeviceUnit::mlp_of(const fetch::ExpertView& view, std::size_t tokens,
                                    const kernels::InputFloats& inputs, Address out) const {
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
          .gate_room = {layout_.gate},
          .up_room = {layout_.up},
          .inner = {layout_.inner},
          .out = {out}};
}

void DeviceUnit::release_pins(fetch::ExpertStore& store) {
  store_.release_pins();
  while (store_.pins() > 0 && store.next_needs_pins()) store_.wait_for_a_pin();
}

void DeviceUnit::finish(std::size_t count) {
  for (std::size_t i = 0; i < std::min(count, returned_.size()); ++i) returned_[i].event().wait();
}

void DeviceUnit::finish_event() {
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
  store_.abandon_event();
  for (const auto* tickets : {&sent_, &returned_})
    for (const Ticket& ticket : *tickets) device_.link().withdraw(ticket);
  for (const auto* tickets : {&sent_, &returned_})
    for (const Ticket& ticket : *tickets) ticket.event().settled().wait();
  sent_.clear();
  returned_.clear();
  try {
    device_.compute().synchronize();
  } catch (const Error&) {  // of the event that is abandoned
  }
}

}  // namespace sluice::engine
