// For tests: an engine that has no mechanism on.
#pragma once
#include "protocols/engine.h"

namespace headway::protocols {

inline Outcome prepare_plain(Engine& engine, uint32_t rank, uint32_t size) {
  settings::Settings settings;
  settings.early_release = settings.progress = settings.prefetch = 0;
  return engine.prepare(settings, rank, size, [](Outcome, uint32_t, const char*) {});
}

}  // namespace headway::protocols
