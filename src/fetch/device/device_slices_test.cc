// Experts in slices on a device: each slice crosses the link when a use needs it, an LSB stays where slots
// have room for it, and a copy that fails fails its event alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "codec/slices/sliced_matrix.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/fake_cuda.h"
#include "fetch/device/device_store_fixture.h"

namespace sluice::fetch {
namespace {

using experts::DeviceBytes;
using experts::DevicePlan;
using experts::EventOutcome;
using experts::ExpertId;
using experts::Part;
using experts::Parts;
using testing::begin_event;
using testing::id;

constexpr Parts kBoth = Part::kMsb | Part::kLsb;
using Content = std::vector<std::byte>;

// What kernels would read: the MSBs of all matrices, and their LSBs if the view has them.
Content content_of(const ExpertView& view) {
  Content all;
  for (const codec::MatrixRef* matrix : {&view.gate, &view.up, &view.down}) {
    const codec::SlicedView slices = codec::slices_of(*matrix);
    const auto add = [&](const std::byte* from, std::size_t bytes) {
      all.insert(all.end(), from, from + bytes);
    };
    add(slices.msb, slices.shape.msb_bytes());
    if (matrix->view != codec::SliceView::kLow) add(slices.lsb, slices.shape.lsb_bytes());
  }
  return all;
}

class DeviceSlices : public testing::ExpertStoreTest {
 protected:
  // A device whose slots have room for these, beside a host that has both slices of all experts of a layer.
  void start(std::uint32_t slots, Parts room) {
    device_store_.reset();
    const std::string path = scratch_.path() + "/m.sluice";
    store::PackOptions options;
    options.slices = codec::SliceBits{8, 4};
    if (!std::filesystem::exists(path))
      store::pack(testing::kModel, path, model::pack_plan(*store::open_checkpoint(testing::kModel)), options);
    open(path, 64, 4);
    device::EmulatedOptions device = device::testing::unpaced(8 * kMiB);
    device.fault = [this](std::uint64_t, Bytes) {
      return fails_ ? device::Fault::kCopyFails : device::Fault::kNone;
    };
    device_ = device::make_emulated_device(std::move(device));
    if (in_place_) device_ = make_sharing_device();
    device_store_ = std::make_unique<DeviceStore>(
        *device_, *store_, DeviceStoreOptions{.slots = slots, .staging = 3, .slot_slices = room});
    event({}, {}, true);
  }

  std::unique_ptr<device::Device> make_sharing_device() {
    device::CudaOptions options;
    options.memory = 8 * kMiB;
    options.host = &accountant_;
    options.in_place = true;
    options.api = &cuda_;
    return device::make_cuda_device(std::move(options));
  }
  ~DeviceSlices() override {
    device_store_.reset();
    device_.reset();
  }

  // The host has both slices; the device computes `ids` in this view. Returns what its launches read.
  std::vector<Content> event(const std::vector<ExpertId>& ids, Parts view, bool first = false) {
    EventOutcome outcome;
    std::vector<ExpertId> all = ids;
    if (first) all = {id(0), id(1), id(2), id(3)};
    for (const ExpertId one : all)
      (first ? outcome.misses : outcome.hits)
          .push_back(
              {.id = one, .parts = kBoth, .before = first ? Parts() : kBoth, .asked = kBoth, .view = kBoth});
    DevicePlan plan;
    for (const ExpertId one : ids) plan.uses.push_back({.id = one, .stays = stays_, .view = view});
    device_store_->release_host(outcome, plan);
    begin_event(*store_, outcome, {.experts = all}, *scheduler_);
    device_store_->begin(0, plan);
    std::vector<Content> read(ids.size());
    try {
      while (std::optional<ExpertStore::Pin> pin = store_->next()) {
        const ExpertId one = pin->id();
        if (first) {
          truth_[one][kBoth.bits()] = content_of(pin->view());
          ExpertMemory msb = pin->place().memory;
          msb.rest = nullptr;
          truth_[one][Parts(Part::kMsb).bits()] =
              content_of(expert_view(*pin->place().layout, pin->place().hidden, msb));
          continue;
        }
        const DeviceStore::Use use = device_store_->use(std::move(*pin));
        Content& content = read[static_cast<std::size_t>(std::ranges::find(ids, one) - ids.begin())];
        device_->compute().wait(use.ready);
        device_->compute().enqueue({[&content, use, this](const device::Access& access) {
          const auto kernel = [&content, view = testing::view_on(access, use.view, use.low)] {
            content = content_of(view);
          };
          in_place_ ? device::testing::FakeCuda::launch(access, kernel) : kernel();
        }});
        device_store_->used(one, device_->compute().record());
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

  void expect_event(const std::vector<ExpertId>& ids, Parts view, Bytes moved) {
    const Bytes before = link_bytes();
    const std::vector<Content> read = event(ids, view);
    for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(read[i], truth_[ids[i]][view.bits()]) << i;
    EXPECT_EQ(link_bytes() - before, moved);
  }

  Bytes link_bytes() const { return device_->link().counters()[device::Traffic::kDemand].bytes; }
  Bytes msb() const { return store_->facts().largest_base; }
  Bytes lsb() const { return store_->facts().largest_rest; }

  bool fails_ = false;
  bool in_place_ = false, stays_ = true;  // the device may read in place; experts stay there
  device::testing::FakeCuda cuda_;
  std::map<ExpertId, std::map<std::uint8_t, Content>> truth_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<DeviceStore> device_store_;
};

TEST_F(DeviceSlices, EachCrossesTheLinkWhenItIsNeeded) {
  start(3, kBoth);
  ASSERT_NE(truth_[id(0)][kBoth.bits()], truth_[id(1)][kBoth.bits()]);
  expect_event({id(0), id(1)}, Part::kMsb, 2 * msb());
  expect_event({id(0), id(1)}, Part::kMsb, 0);
  expect_event({id(0)}, kBoth, lsb());
  expect_event({id(0)}, kBoth, 0);
  expect_event({id(0)}, Part::kMsb, 0);  // as the plan says, though the LSB is there
  expect_event({id(0), id(1), id(2)}, kBoth, lsb() + msb() + lsb());
  expect_event({id(0), id(1), id(2)}, kBoth, 0);
}

TEST_F(DeviceSlices, AnLsbGoesWhereSlotsHaveNoRoomForIt) {
  start(4, Part::kMsb);
  for (int i = 0; i < 3; ++i) {
    expect_event({id(0), id(1), id(2), id(3)}, kBoth, 4 * lsb() + (i == 0 ? 4 * msb() : 0));
    expect_event({id(0), id(1), id(2), id(3)}, Part::kMsb, 0);
  }
  const device::Accountant& accountant = device_->memory().accountant();
  EXPECT_EQ(accountant.used(device::Account::kExperts), 4 * round_up(msb(), 256));
  EXPECT_EQ(accountant.used(device::Account::kStaging), 3 * (round_up(msb(), 256) + round_up(lsb(), 256)));
}

TEST_F(DeviceSlices, ACopyThatFailsFailsItsEventAndTheNextBringsTheSliceAgain) {
  for (const Parts room : {kBoth, Parts(Part::kMsb)}) {
    fails_ = false;
    start(3, room);
    expect_event({id(0)}, Part::kMsb, msb());
    fails_ = true;
    EXPECT_THROW(event({id(0), id(1)}, kBoth), Error);
    fails_ = false;
    EXPECT_EQ(event({id(0), id(1)}, kBoth)[0], truth_[id(0)][kBoth.bits()]);
    EXPECT_EQ(event({id(0), id(1)}, Part::kMsb)[1], truth_[id(1)][Parts(Part::kMsb).bits()]);
  }
}

// Prefetches and updates copy the slices that are named, if the host has them.
TEST_F(DeviceSlices, WhatIsCopiedAheadHasTheSlicesThatWereNamed) {
  start(3, kBoth);
  device_store_->prefetch(std::vector<experts::PartRequest>{{.id = id(0), .parts = Part::kMsb}});
  const auto copied = [&] { return device_->link().counters()[device::Traffic::kPrefetch].bytes; };
  while (copied() < msb()) std::this_thread::yield();
  expect_event({id(0)}, Part::kMsb, 0);
  DevicePlan plan;
  plan.updates = {{.id = id(1), .parts = Part::kMsb}, {.id = id(2), .parts = kBoth}};
  device_store_->release_host({}, plan);
  begin_event(*store_, {}, {}, *scheduler_);
  device_store_->begin(0, plan);
  device_store_->finish_event();
  const auto updated = [&] { return device_->link().counters()[device::Traffic::kUpdate].bytes; };
  while (updated() < 2 * msb() + lsb()) std::this_thread::yield();
  EXPECT_EQ(updated(), 2 * msb() + lsb());
  EXPECT_TRUE(device_store_->has({.id = id(1), .view = Part::kMsb}));
  EXPECT_FALSE(device_store_->has({.id = id(1), .view = kBoth}));
  EXPECT_TRUE(device_store_->has({.id = id(2), .view = kBoth}));
  expect_event({id(1), id(2)}, kBoth, lsb());
}

// Slices of which the device has none; of others it lacks some, which are copied.
TEST_F(DeviceSlices, WhatPassesIsReadInPlace) {
  in_place_ = true;
  start(3, kBoth);
  stays_ = false;
  expect_event({id(0), id(1)}, Part::kMsb, 0);
  expect_event({id(0), id(1)}, kBoth, 0);
  EXPECT_EQ(device_store_->counters().in_place, 4u);
  stays_ = true;
  expect_event({id(0)}, Part::kMsb, msb());
  expect_event({id(0)}, kBoth, lsb());
  EXPECT_EQ(device_store_->counters().in_place, 4u);
  EXPECT_EQ(device_store_->pins(), 0u);
}

}  // namespace
}  // namespace sluice::fetch
