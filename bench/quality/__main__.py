"""python -m bench.quality DATA_DIR"""

from bench.quality.measure import main

main()
