/* layer: what librecorder knows of a layer. Thread: any. Owner: the layer. Invariant: entries in
   the order of recorder_functions.inc; null where this MPI has no such function. */
#ifndef HEADWAY_RECORD_LAYER_H
#define HEADWAY_RECORD_LAYER_H

typedef struct RecordLayer {
  int version;
  int functions;
  void* const* entries;
} RecordLayer;

#endif
