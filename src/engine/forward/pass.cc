#include "engine/forward/pass.h"

#include <utility>

#include "base/error.h"
#include "engine/forward/passes.h"

namespace sluice::engine {

Pass::Pass(Passes& passes, const Step& step, std::size_t rows, std::uint64_t number, std::size_t first_layer)
    : passes_(&passes), step_(step), rows_(rows), number_(number), layer_(first_layer) {}

Pass::Pass(Pass&& other) noexcept
    : passes_(std::exchange(other.passes_, nullptr)),
      step_(other.step_),
      rows_(other.rows_),
      number_(other.number_),
      layer_(other.layer_),
      counts_(other.counts_) {}

void Pass::cancel() {
  Passes* const passes = std::exchange(passes_, nullptr);
  if (passes == nullptr) return;
  passes->parts_.ops.abandon();
  passes->parts_.moe.cancel_step(step_);
  passes->release(*this);
}

template <class Body>
void Pass::enter(const Body& body) {
  SLUICE_CHECK(!is_over(), "a pass goes on that is over");
  try {
    passes_->enter(*this);
    body();
  } catch (const Error& error) {
    const Passes* const passes = passes_;
    cancel();
    passes->parts_.on_error(error);
    throw;
  } catch (...) {
    cancel();
    throw;
  }
}

void Pass::advance(std::size_t to_layer) {
  enter([&] {
    passes_->advance(*this, to_layer);
    passes_->leave(*this);
  });
}

void Pass::finish(const LogitSink& sink) {
  enter([&] { passes_->finish(*this, sink); });
  std::exchange(passes_, nullptr)->release(*this);
}

}  // namespace sluice::engine
