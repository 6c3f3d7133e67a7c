// A device as a compute unit: activations go down its link, experts are computed on its stream, rows come
// back. Or the dense part is computed there, too, and neither crosses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "engine/forward/unit/compute_unit.h"
#include "engine/plan/options.h"
#include "engine/plan/unit_parts.h"
#include "fetch/device/device_store.h"
#include "fetch/device/device_view.h"
#include "kernels/ops/unit_kernels.h"

namespace sluice::engine {

// The device computes in its own memory, with kernels whose rows have the host's bits. Weights come through a
// DeviceStore. Each event sends the tokens' inputs down once, in the forms that experts read
// (Traffic::kDemand, as biases are), and each expert's rows up (kResult) as soon as they are computed. The
// caller does not wait before finish_event(). With the dense part on the device (join) inputs are there
// already, and rows stay among those of the event.
//
// The device's memory holds, beside experts, what activation_bytes() says. Thread-compatible. References
// must outlive it.
class DeviceUnit final : public ComputeUnit {
 public:
  // `kernels`: those of the device. Error(kBudget) if the device's memory is too small.
  DeviceUnit(device::Device& device, kernels::UnitKernels& kernels, const UnitParts& parts,
             const fetch::DeviceStoreOptions& options);
  ~DeviceUnit() override;
  static Bytes activation_bytes(const UnitParts& parts);

  // The dense part is computed here: where its activations are. REQUIRES: UnitParts::dense_there; before the
  // first event.
  void join(const Workspace& dense);

  // For measurements, while no event runs and none has run. put_sample() copies an expert; compute_sample()
  // computes it for some tokens, of which nobody sees the rows. The others copy into memory that nothing
  // reads: the expert again, or a few bytes. `place` must live until the event is done. Error(kIo).
  void put_sample(const fetch::PlacedExpert& place);
  device::Event compute_sample(std::uint32_t tokens);
  device::Event copy_sample(const fetch::PlacedExpert& place);
  device::Event copy_little();
  device::Event copy_little_back();
  bool reads_in_place(const fetch::PlacedExpert& place) const { return store_.reads_in_place(place); }
  device::HostPace* host_pace() { return device_.host_pace(); }  // as Device::host_pace()

  void release_host(const experts::EventOutcome& host, const experts::DevicePlan& plan) override {
    store_.release_host(host, plan);
  }
  void begin_event(const UnitEvent& event) override;
  bool has(const experts::DeviceUse& use) const override { return store_.has(use); }
  bool gathers() const override { return true; }
  void compute(const ExpertWork& work, std::optional<fetch::ExpertStore::Pin> pin,
               const HostWorkspace& host) override;
  void launch() override;
  void finish(std::size_t count) override;
  void take(fetch::ExpertStore::Pin pin) override { store_.keep_if_copied(std::move(pin)); }
  void prefetch(std::span<const experts::PartRequest> requests) override { store_.prefetch(requests); }
  void release_pins(fetch::ExpertStore& store) override;
  void finish_event() override;
  void abandon_event() noexcept override;

  fetch::DeviceStore& store() { return store_; }

 private:
  // Rows and biases of launches: two, so that one launch is computed while another's rows come back. A launch
  // is one expert, or several that are here already.
  static constexpr std::size_t kLaunches = 2;

  struct Form {
    codec::InputForm form{};
    std::size_t floats = 0;  // floats of a token
    device::Address inputs, gathered;
  };
  // Where activations are in the device's memory. T tokens, R = rows of a launch, d = hidden, f = width of an
  // expert, u = rows of up.
  struct Layout {
    std::vector<Form> forms;   // (T, floats) inputs, unless they are there; (R, floats) gathered
    device::Address gate, up;  // (R, f), (R, u)
    device::Address inner;     // (R, largest form of f)
    Bytes inner_row = 0;
    std::array<device::Address, kLaunches> rows;    // (R, d); none if rows stay
    std::array<device::Address, kLaunches> biases;  // (most_experts, f + u + d)
    Bytes bytes = 0;
  };
  struct OneExpert;  // what the operation of a launch needs of one
  struct Held {      // given to compute(), and not launched
    experts::ExpertId id;
    std::vector<std::uint32_t> tokens;
    std::span<float> out;  // the host's
    std::size_t first_row = 0;
    std::span<const float> gate_bias, up_bias, down_bias;  // the host's, until the event ends
    fetch::DeviceStore::Use use;
    bool has_biases() const { return !gate_bias.empty() || !up_bias.empty() || !down_bias.empty(); }
  };
  struct Way {  // one of the kLaunches
    device::Event free;
  };

  static Layout lay_out(device::Address begin, const UnitParts& parts);
  void send_inputs(const UnitEvent& event);
  // To the place of the launch's expert number `which`; the stream waits for them.
  void send_biases(const Held& held, std::size_t way, std::size_t which, OneExpert& expert);
  // Queues one launch of these, and what brings its rows back.
  void enqueue(std::span<Held> held, std::size_t way);
  void run(std::span<const OneExpert> experts, std::size_t event_tokens, const device::Access& access);
  // The expert for some tokens whose inputs are where `inputs` says, with the rooms behind `first_row`.
  kernels::op::Mlp mlp_of(const fetch::ExpertView& view, std::size_t tokens,
                          const kernels::InputFloats& inputs, std::size_t first_row,
                          device::Address out) const;

  device::Device& device_;
  kernels::UnitKernels& kernels_;
  const codec::SliceView low_view_;
  const kernels::Gating gating_;
  const std::size_t hidden_, width_, up_rows_, most_tokens_, most_rows_, most_experts_;
  const bool dense_there_;
  fetch::DeviceStore store_;
  device::Block memory_;
  Layout layout_;
  device::Address event_rows_;  // rows of the dense part's activations, if it is here
  fetch::DeviceView sample_;
  float little_ = 0;  // what copy_little() copies
  // The running event:
  std::size_t tokens_ = 0, launches_ = 0;
  bool needed_ = false;
  std::vector<device::Ticket> sent_, returned_;
  std::array<Way, kLaunches> ways_;
  std::vector<Held> held_;
  std::size_t held_rows_ = 0;
};

}  // namespace sluice::engine
