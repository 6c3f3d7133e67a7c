// A device beside the store of a small model. For tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "device/access.h"
#include "device/emulated/device_testing.h"
#include "fetch/device/device_store.h"
#include "fetch/memory/expert_store_fixture.h"

namespace sluice::fetch::testing {

// The matrices of an expert on a device whose memory this program reaches, while an operation runs there.
inline ExpertView view_on(const device::Access& access, const DeviceView& view, bool low) {
  ExpertMemory memory;
  const std::byte* const first = access.data(view.first, view.first_bytes);
  (view.in_regions ? memory.base : memory.view) = first;
  if (view.rest_bytes > 0 && !low) memory.rest = access.data(view.rest, view.rest_bytes);
  return expert_view(*view.layout, view.hidden, memory);
}

constexpr experts::ExpertId id(std::uint16_t index, std::uint16_t layer = 0) { return {layer, index}; }

// A device beside the store of a small model whose experts are all in memory.
class DeviceStoreTest : public ExpertStoreTest {
 protected:
  void start(std::uint32_t slots, std::uint32_t staging = 2, Bytes host = 64, Bytes host_staging = 4,
             const std::string& path = kModel) {
    open(path, host, host_staging, fetch_options_);
    device::EmulatedOptions options = device::testing::unpaced(32 * kMiB);
    options.fault = [this](std::uint64_t copy, Bytes) {
      if (stops_at_ == copy) barrier_.stop_here();
      return fails_at_ == copy ? device::Fault::kCopyFails : device::Fault::kNone;
    };
    device_ = device::make_emulated_device(std::move(options));
    device_store_ = std::make_unique<DeviceStore>(*device_, *store_, DeviceStoreOptions{slots, staging});
    // All experts of the first two layers are in the host's memory.
    for (std::uint16_t layer = 0; layer < 2; ++layer) {
      EventOutcome all;
      for (std::uint16_t i = 0; i < 4; ++i) all.misses.push_back({id(i, layer), Part::kFull});
      run(all);
    }
  }

  // Has the device do this, which is what an operation is for. Here operations are functions.
  virtual void launch_kernel(const device::Access& /*access*/, std::function<void()> kernel) { kernel(); }
  static void read_all(const ExpertView& view, std::vector<std::byte>& into) {
    for (const codec::MatrixRef* matrix : {&view.gate, &view.up, &view.down}) {
      const std::vector<std::byte> bytes = bytes_of(*matrix);
      into.insert(into.end(), bytes.begin(), bytes.end());
    }
  }

  // Runs one event whose experts are all computed on the device, and returns what launches read, in the
  // order of the plan. Where an expert is in one tier alone, the experts `adopted` come back to the host.
  std::vector<std::vector<std::byte>> event(const experts::DevicePlan& plan, std::uint16_t layer = 0,
                                            std::vector<ExpertId> adopted = {}) {
    EventOutcome outcome;
    for (const ExpertId one : adopted) outcome.adopted.push_back({one, Part::kFull});
    std::vector<ExpertId> ids;
    for (const experts::DeviceUse& use : plan.uses)
      if (!exclusive_ || use.from == experts::DeviceBytes::kLink) ids.push_back(use.id);
    std::ranges::sort(ids);
    for (const ExpertId one : ids) {
      outcome.hits.push_back({one, exclusive_ ? Parts() : Parts(Part::kFull), Part::kFull});
      if (exclusive_) outcome.evicted.push_back({one, Part::kFull});
    }
    outcome.given = outcome.evicted.size();
    device_store_->release_host(outcome, plan);
    begin_event(*store_, outcome, {.experts = ids}, *scheduler_);
    device_store_->begin(layer, plan);
    std::vector<std::vector<std::byte>> read(plan.uses.size());
    std::vector<ExpertId> given;
    const auto launch = [&](ExpertId one, DeviceStore::Use use) {
      const std::size_t place = static_cast<std::size_t>(
          std::ranges::find(plan.uses, one, &experts::DeviceUse::id) - plan.uses.begin());
      device::Stream& stream = device_->compute();
      stream.wait(use.ready);
      stream.enqueue({[&read, use, place, this](const device::Access& access) {
        launch_kernel(access, [&into = read[place], view = view_on(access, use.view, use.low)] {
          read_all(view, into);
        });
      }});
      device_store_->used(one, stream.record());
      given.push_back(one);
    };
    try {
      for (const experts::DeviceUse& use : plan.uses)
        if (device_store_->has(use)) launch(use.id, device_store_->use(use.id));
      for (;;) {
        device_store_->release_pins();
        while (device_store_->pins() > 0 && store_->next_needs_pins()) device_store_->wait_for_a_pin();
        std::optional<ExpertStore::Pin> pin = store_->next();
        if (!pin) break;
        const ExpertId one = pin->id();
        if (std::ranges::find(given, one) != given.end())
          device_store_->keep_if_copied(std::move(*pin));
        else
          launch(one, device_store_->use(std::move(*pin)));
      }
      device_->compute().synchronize();
      device_store_->finish_event();
    } catch (const Error&) {
      device_store_->abandon_event();
      store_->abandon_event();
      throw;
    }
    return read;
  }

  static experts::DevicePlan uses(std::initializer_list<std::uint16_t> ids, bool stay) {
    experts::DevicePlan plan;
    for (const std::uint16_t one : ids) plan.uses.push_back({.id = id(one), .stays = stay});
    return plan;
  }
  static std::vector<experts::PartRequest> requests(std::initializer_list<std::uint16_t> ids,
                                                    std::uint16_t layer = 0) {
    std::vector<experts::PartRequest> all;
    for (const std::uint16_t one : ids) all.push_back({.id = id(one, layer), .parts = Part::kFull});
    return all;
  }
  void expect_read(const experts::DevicePlan& plan, const std::vector<std::vector<std::byte>>& read) {
    for (std::size_t i = 0; i < plan.uses.size(); ++i) EXPECT_EQ(read[i], truth(plan.uses[i].id)) << i;
  }
  const DeviceStoreCounters& counters() const { return device_store_->counters(); }
  device::TrafficCounters link(device::Traffic traffic) const { return device_->link().counters()[traffic]; }

  FetchOptions fetch_options_;
  bool exclusive_ = false;  // the host gives up what the device uses
  std::uint64_t stops_at_ = ~0ull, fails_at_ = ~0ull;
  device::testing::Barrier barrier_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<DeviceStore> device_store_;
};

}  // namespace sluice::fetch::testing
