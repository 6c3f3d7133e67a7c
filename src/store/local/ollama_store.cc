// Ollama: manifests/HOST/NAMESPACE/NAME/TAG is JSON; in its "layers" the one with the model names a GGUF file
// by its digest, sha256:H, which lies in blobs/sha256-H.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "store/local/local_programs.h"

namespace sluice::store {
namespace {

constexpr std::string_view kHost = "registry.ollama.ai", kLibrary = "library", kDigest = "sha256:";
constexpr std::string_view kLayer = "application/vnd.ollama.image.", kModel = "model", kAdapter = "adapter";
constexpr std::size_t kDigestLetters = 64;
constexpr JsonLimits kLimits{.max_bytes = kMiB, .max_depth = 16};

struct OllamaManifest {
  std::vector<std::string> models;  // their digests
  bool adapter = false;
};

// Error for what is no such manifest.
OllamaManifest read_manifest(const std::string& path) {
  const Json json = read_json_file(path, kLimits);
  const JsonObject manifest(json, path);
  const Json* const layers = manifest.find("layers");
  if (layers == nullptr || !layers->is_array()) manifest.fail("layers", "an array");
  OllamaManifest found;
  for (const Json& each : *layers) {
    const JsonObject layer(each, path + ": layers");
    const std::string type = layer.string("mediaType");
    if (!type.starts_with(kLayer)) continue;
    const std::string_view kind = std::string_view(type).substr(kLayer.size());
    if (kind == kModel) found.models.push_back(layer.string("digest"));
    if (kind == kAdapter) found.adapter = true;
  }
  return found;
}

bool is_digest(std::string_view digest) {
  return digest.starts_with(kDigest) && digest.size() == kDigest.size() + kDigestLetters &&
         std::ranges::all_of(digest.substr(kDigest.size()),
                             [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Sets the file of a model, or says what it lacks.
void set_blob(const std::string& place, const OllamaManifest& manifest, LocalModel& model) {
  if (manifest.adapter) {
    model.fault = "it has an adapter, which would have to be applied to its weights";
  } else if (manifest.models.size() != 1) {
    model.fault = manifest.models.empty() ? "its manifest names no GGUF file"
                                          : "its manifest names several files of weights";
  } else if (!is_digest(manifest.models.front())) {
    model.fault = "its manifest names the file of weights by something other than a SHA-256 digest";
  } else {
    const std::string blob = "blobs/sha256-" + manifest.models.front().substr(kDigest.size());
    model.path = place + "/" + blob;
    std::error_code failed;
    const std::uintmax_t bytes = std::filesystem::file_size(model.path, failed);
    if (failed)
      model.fault = blob + " is missing";
    else
      model.bytes = bytes;
  }
}

std::string repository_name(const std::string& host, const std::string& space, const std::string& name) {
  if (host != kHost) return fmt::format("{}/{}/{}", host, space, name);
  return space == kLibrary ? name : space + "/" + name;
}

void look_at_tags(LocalSearch& search, const std::string& place, const std::string& folder,
                  const std::string& repository) {
  for (const FolderEntry& tag : search.entries(folder)) {
    if (tag.kind == EntryKind::kFolder || tag.kind == EntryKind::kOther || tag.name.starts_with('.'))
      continue;
    const std::string path = folder + "/" + tag.name;
    LocalModel model{.name = repository + ":" + tag.name,
                     .own_name = repository + ":" + tag.name,
                     .repository = repository,
                     .form = LocalForm::kGguf,
                     .path = path,
                     .files = 1};
    try {
      set_blob(place, read_manifest(path), model);
    } catch (const Error& error) {
      model.fault = "its manifest cannot be read: " + error.message();
    }
    search.add(std::move(model));
  }
}

}  // namespace

std::vector<std::string> ollama_places(const LocalEnvironment& environment) {
  const std::string own = environment.first_of({"OLLAMA_MODELS"});
  return {own.empty() ? environment.home + "/.ollama/models" : own,
          environment.ollama_service + "/.ollama/models"};
}

void look_in_ollama(LocalSearch& search, const std::string& place) {
  const std::string manifests = place + "/manifests";
  for (const std::string& host : search.folders(manifests))
    for (const std::string& space : search.folders(manifests + "/" + host))
      for (const std::string& name : search.folders(manifests + "/" + host + "/" + space))
        look_at_tags(search, place, fmt::format("{}/{}/{}/{}", manifests, host, space, name),
                     repository_name(host, space, name));
}

}  // namespace sluice::store
