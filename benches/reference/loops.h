/* The reference: Tailback's two-sided and allreduce kernels as plainly as MPI allows. */
#ifndef TAILBACK_REFERENCE_LOOPS_H
#define TAILBACK_REFERENCE_LOOPS_H

enum reference_kernel {
    REFERENCE_RING,      /* 8 B to and from both neighbours */
    REFERENCE_BANDWIDTH, /* 8 messages of 128 KiB to and from both neighbours */
    REFERENCE_BW_SYNC,   /* the same, then a barrier */
    REFERENCE_ALLREDUCE, /* one double */
    REFERENCE_KERNELS
};

/* All return 0, or the code of the MPI call that failed. MPI must be initialised; collective. */
int reference_open(void);
int reference_run(enum reference_kernel kernel, int iterations);
int reference_close(void);

#endif
