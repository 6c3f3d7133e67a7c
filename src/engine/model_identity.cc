#include "engine/model_identity.h"

#include <limits>
#include <span>
#include <string>

#include "base/error.h"
#include "base/hash.h"
#include "base/machine/thread_pool.h"
#include "device/accountant.h"
#include "device/space.h"
#include "engine/engine.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/run_report.h"
#include "fetch/weight_files.h"
#include "model/architecture.h"
#include "model/config.h"
#include "store/checkpoint.h"

namespace sluice::engine {
namespace {

// `add_router(layer, hash)` adds the words of a sparse layer's router.
template <class AddRouter>
std::uint64_t identity_of(const store::Checkpoint& checkpoint, const model::ModelConfig& config,
                          AddRouter add_router) {
  Xxh3Stream hash;
  for (const store::TensorInfo& tensor : checkpoint.tensors()) {
    std::string line = tensor.name;
    line += ' ';
    line += dtype_name(tensor.dtype);
    line += ' ';
    line += tensor.shape_text();
    line += '\n';
    hash.update(std::as_bytes(std::span(line.data(), line.size())));
  }
  for (std::uint32_t layer = 0; layer < config.layers; ++layer)
    if (config.sparse[layer]) add_router(static_cast<std::int32_t>(layer), hash);
  return hash.digest();
}

}  // namespace

std::uint64_t model_identity(const store::Checkpoint& checkpoint, const model::ModelConfig& config,
                             const DenseWeights& weights) {
  return identity_of(checkpoint, config, [&](std::int32_t layer, Xxh3Stream& hash) {
    const codec::MatrixRef& router = weights.words(model::Role::kRouter, layer);
    hash.update({device::host_space().pointer(router.planes[0]), router.format->bytes(router.shape)});
  });
}

std::uint64_t model_identity(const Engine& engine) {
  const DenseWeights& weights = engine.report().weights;
  if (!weights.on_host()) return model_identity(engine.checkpoint(), engine.model(), engine.plan().fetch);
  return model_identity(engine.checkpoint(), engine.model().config, weights);
}

std::uint64_t model_identity(const store::Checkpoint& checkpoint, const model::Model& model,
                             const fetch::FetchOptions& options) {
  fetch::WeightFiles files(checkpoint, options);
  ThreadPool pool(1);
  fetch::PieceDecoder decoder(files, pool, best_isa(), checkpoint.codec());
  device::Accountant accountant(std::numeric_limits<Bytes>::max());  // outside every engine's budget
  return identity_of(checkpoint, model.config, [&](std::int32_t layer, Xxh3Stream& hash) {
    const model::TensorSpec* const spec = model.find(model::Role::kRouter, layer);
    SLUICE_CHECK(spec != nullptr, model.config.model_type);
    const store::TensorInfo* const tensor = checkpoint.find(spec->name);
    SLUICE_CHECK(tensor != nullptr, spec->name);
    try {
      const fetch::ResidentPiece router =
          fetch::load_piece(checkpoint.locate({tensor->name, 0, tensor->elements()}), files, decoder,
                            accountant, device::Account::kStaging);
      hash.update({router.data, router.bytes});
    } catch (Error& error) {
      if (error.kind() == ErrorKind::kCorrupt) fetch::in_tensor(error, spec->name);
      throw;
    }
  });
}

}  // namespace sluice::engine
