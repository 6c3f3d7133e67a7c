#include "store/source/open_checkpoint.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/setting.h"
#include "store/format.h"
#include "store/source/directory_checkpoint.h"
#include "store/source/gguf.h"
#include "store/source/gguf_checkpoint.h"
#include "store/source/store_checkpoint.h"

namespace sluice::store {
namespace {

// Refuses a published model in a directory that is named like a store.
void refuse_misnamed_model(const std::string& path) {
  const auto has = [&](std::string_view name) {
    std::error_code ignored;
    return std::filesystem::exists(std::filesystem::path(path) / name, ignored);
  };
  if (has(kManifestName) || has(kJournalName) || !has("config.json")) return;
  throw Error(ErrorKind::kInvalid, "a packed store is expected because of the name NAME.sluice")
      .in(path)
      .expected(kManifestName)
      .found("config.json, as in a model that is not packed")
      .fix("give the directory another name, or pack it under that: sluice pack MODEL " +
           flag(Setting::kOutput) + " NAME.sluice");
}

}  // namespace

std::unique_ptr<Checkpoint> open_checkpoint(const std::string& path) {
  if (looks_like_gguf(path)) return open_gguf(path);
  if (!looks_like_store(path)) return open_directory(path);
  refuse_misnamed_model(path);
  return open_store_checkpoint(path);
}

}  // namespace sluice::store
