/* The network mlp of `hone zoo`, built into the program: no package to find, nothing of Hone to install.
 *
 *     classify < digit.bin        784 floats, row-major, little-endian */
#include <stdio.h>

#include "mlp.h"

int main(void) {
  static float pixels[784], scores[10];
  const mlp_inputs inputs = {pixels};
  const mlp_outputs outputs = {scores};
  mlp network;
  int best = 0;
  if (fread(pixels, sizeof(float), 784, stdin) != 784) {
    fprintf(stderr, "classify: standard input holds fewer than 784 floats\n");
    return 1;
  }
  if (mlp_open(&network, 0) != HONE_OK || mlp_run(&network, &inputs, &outputs) != HONE_OK) {
    fprintf(stderr, "classify: %s\n", hone_last_error());
    return 1;
  }
  for (int i = 0; i < 10; ++i) {
    if (scores[i] > scores[best]) best = i;
    printf("%d %.9g\n", i, (double)scores[i]);
  }
  printf("it is a %d\n", best);
  mlp_close(&network);
  return 0;
}
