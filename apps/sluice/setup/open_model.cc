#include "setup/open_model.h"

#include "base/setting.h"
#include "base/stopwatch.h"
#include "flags/model_argument.h"
#include "flags/number_range.h"
#include "model/config.h"
#include "setup/open_tokenizer.h"
#include "store/source/open_checkpoint.h"

namespace sluice::app {

OpenModel open_model(const std::string& path, WithTokenizer with_tokenizer, const CommonFlags& flags) {
  OpenModel open;
  Stopwatch watch;
  check_model_name(path);
  open.checkpoint = store::open_checkpoint(path);
  open.model = model::describe_model(*open.checkpoint);
  open.open_s = watch.lap();
  if (with_tokenizer != WithTokenizer::kNo) open.tokenizer = tokenizer_of(*open.checkpoint, flags);
  if (with_tokenizer == WithTokenizer::kRequired && open.tokenizer == nullptr) throw no_tokenizer(path);
  open.tokenizer_s = watch.lap();
  return open;
}

std::size_t context_tokens(const EngineFlags& flags, const model::Model& model) {
  if (flags.context == 0) return model.config.max_positions;
  return in_range(flags.context, 1, model.config.max_positions, Setting::kContext);
}

}  // namespace sluice::app
