export { Chart, type ChartProps, type Series } from './Chart';
export { Spark } from './Spark';
